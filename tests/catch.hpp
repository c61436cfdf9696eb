#pragma once
// The one place that includes Catch2: version 2 (Debian 12) or 3. Use what both have: TEST_CASE,
// TEMPLATE_TEST_CASE, SECTION, GENERATE, REQUIRE, CHECK, INFO, CAPTURE.

#if __has_include(<catch2/catch.hpp>)
#include <catch2/catch.hpp>
#else
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_adapters.hpp>
#include <catch2/generators/catch_generators_range.hpp>

// The pragmas that version 3 writes around each assertion make the device compiler of CUDA 13.0
// hang (NVIDIA's bug 5475335, as CCCL's own test header says). They only silence warnings.
#ifdef __CUDACC__
#undef CATCH_INTERNAL_START_WARNINGS_SUPPRESSION
#undef CATCH_INTERNAL_STOP_WARNINGS_SUPPRESSION
#define CATCH_INTERNAL_START_WARNINGS_SUPPRESSION
#define CATCH_INTERNAL_STOP_WARNINGS_SUPPRESSION
#endif
#endif
