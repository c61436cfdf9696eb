# The laws of the headers, checked by reading them:
#   cmake -D ROOT=<the project> -P laws.cmake
# Comments are not read; strings are, since inline PTX hides there.

cmake_minimum_required(VERSION 3.25)
set(broken "")
macro(broke what)
  string(APPEND broken "\n  ${name}: ${what}")
endmacro()

# Breaks where the text holds the pattern, unless the header is named after it as allowed.
macro(forbid pattern why)
  set(allowed ${ARGN})
  if(NOT name IN_LIST allowed AND text MATCHES "${pattern}")
    string(STRIP "${CMAKE_MATCH_0}" found)
    broke("`${found}`: ${why}")
  endif()
endmacro()

file(READ "${ROOT}/include/cutoff/key.hpp" text)
foreach(part IN ITEMS major minor patch)
  string(TOUPPER ${part} upper)
  string(REGEX MATCH "CUTOFF_VERSION_${upper} ([0-9]+)" _ "${text}")
  set(${part} "${CMAKE_MATCH_1}")
endforeach()

# Floors. A header includes key.hpp and headers of lower floors, nothing else of ours.
set(floor_0 key.hpp group.hpp shape.hpp)
set(floor_1 measure.hpp row.hpp)
set(floor_2 pivot.hpp)
set(floor_3 rule.hpp tiles.hpp)
set(floor_4 sink.hpp find.hpp)
set(floor_5 sample.hpp tally.hpp)
set(floor_6 cut.hpp)
set(floor_7 cutoff.cuh)
set(below "")
foreach(floor RANGE 7)
  foreach(name IN LISTS floor_${floor})
    set(may_include_${name} key.hpp ${below})
  endforeach()
  list(APPEND below ${floor_${floor}})
endforeach()
set(device scope.cuh collectives.cuh group.cuh)  # stands beside them
set(may_include_scope.cuh "")
set(may_include_collectives.cuh group.hpp scope.cuh)
set(may_include_group.cuh collectives.cuh)
list(APPEND may_include_cutoff.cuh group.cuh)

file(GLOB_RECURSE headers RELATIVE "${ROOT}/include/cutoff" "${ROOT}/include/cutoff/*")
foreach(name IN LISTS headers below device)
  if(NOT name IN_LIST headers)
    broke("missing")
  elseif(NOT DEFINED may_include_${name})
    broke("has no floor")  # a folder, `detail` or other, neither
  endif()
endforeach()

foreach(name IN LISTS headers)
  file(READ "${ROOT}/include/cutoff/${name}" text)
  string(REPLACE ";" "," text "${text}")  # what would split the lists made below
  string(REGEX REPLACE "//[^\n]*|/\\*([^*]|\\*+[^*/])*\\*+/" " " text "\n${text}")

  string(REGEX MATCHALL "# *include +[<\"][^>\"]+" includes "${text}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "# *include +" "" include "${include}")
    if(include MATCHES "^(\"|<cutoff/)(.*)" AND NOT CMAKE_MATCH_2 IN_LIST may_include_${name})
      broke("may not include ${CMAKE_MATCH_2}")
    elseif(name MATCHES "hpp$" AND include MATCHES "[.]cuh$|^<(cub|thrust|cooperative_groups)")
      broke("may not include ${include}>: plain g++ compiles a .hpp")
    endif()
  endforeach()

  set(group "belongs into the groups")
  forbid("threadIdx|__sync[a-z]+|[a-z_.]*barrier[a-z_.]*|bar[.][a-z]+" "${group}" ${device})
  forbid("atomic[A-Z_][A-Za-z_]*|cuda::(std::)?atomic|atom[.][a-z]+|red[.][a-z]+" "${group}" ${device})
  forbid("cub::|<cub/[^>]*|cooperative_groups" "${group}" ${device})
  forbid("__(shfl|ballot|any|all|match|reduce|activemask)[a-z_]*" "${group}" ${device})
  forbid("warpSize|[%&/] *3[12][^0-9]" "the width of a warp ${group}" ${device})  # D93
  forbid("__global__|cudaStream_t|<<<|cudaLaunch[A-Za-z]*" "belongs into cutoff.cuh" cutoff.cuh)

  forbid("[^A-Za-z0-9_]double[^A-Za-z0-9_]|[a-z][.]f64" "some GPUs have hardly any units for it"
    measure.hpp)  # D43: there only where a GPU has them
  forbid("__builtin_[a-z_]*|__attribute__|[^A-Za-z0-9_]uint " "fixed-width types, standard names")  # D90
  forbid("[^A-Za-z0-9_]_Pragma" "no pragmas but once and unroll")
  if(NOT text MATCHES "inline namespace v${major} ")
    broke("the namespace is the version's: cutoff, inline v${major}")
  endif()

  string(REGEX MATCHALL "\n *# *[a-z]+[^\n]*" directives "${text}")
  foreach(line IN LISTS directives)
    string(STRIP "${line}" line)
    if(line MATCHES "^# *pragma" AND NOT line MATCHES "pragma +(once|unroll)")
      broke("${line}: no pragmas but once and unroll")
    elseif(line MATCHES "^# *(define|undef)"
        AND NOT "${name} ${line}" MATCHES "^key.hpp # *define CUTOFF_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
      broke("${line}: one macro family, the version's in key.hpp")
    endif()
  endforeach()
endforeach()

# The version is written in key.hpp and nowhere else, but in results, which say what they measured.
file(GLOB_RECURSE files "${ROOT}/include/*" "${ROOT}/tests/*" "${ROOT}/bench/*" "${ROOT}/examples/*")
foreach(file IN LISTS files ITEMS "${ROOT}/CMakeLists.txt" "${ROOT}/CMakePresets.json" "${ROOT}/README.md")
  if(file MATCHES "(hpp|cuh|cpp|cu|txt|cmake|json|md)$" AND NOT file MATCHES "/bench/results/"
      AND EXISTS "${file}")
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${ROOT}" OUTPUT_VARIABLE name)
    file(READ "${file}" text)
    if(text MATCHES "[^0-9.]${major}[.]${minor}[.]${patch}[^0-9.]")
      broke("the version belongs into key.hpp")
    endif()
  endif()
endforeach()

if(broken)
  message(FATAL_ERROR "Laws broken:${broken}")
endif()
list(LENGTH headers count)
message(STATUS "${count} headers keep the laws")
