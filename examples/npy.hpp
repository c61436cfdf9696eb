#pragma once

#include <cuda_fp16.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace npy {

struct array {
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;  // [rows, columns]
};

/// What is still unread of the header's text, which is a Python dictionary.
struct header {
  std::string_view rest;

  bool take(std::string_view token) {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    bool const here = rest.starts_with(token);
    if (here) rest.remove_prefix(token.size());
    return here;
  }
  std::string_view quoted() {  // empty where no string stands
    std::size_t const size = take("'") ? rest.find('\'') : rest.npos;
    if (size == rest.npos) return {};
    std::string_view const text = rest.substr(0, size);
    rest.remove_prefix(size + 1);
    return text;
  }
  std::int64_t length() {  // -1 where no length stands, or one beyond 63 bits
    std::int64_t value = -1;
    take("");
    auto const [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return error == std::errc{} ? value : -1;
  }
};

/// Reads a NumPy file, version 1.0 or 2.0, of fp16 or fp32 in C order with one or two dimensions.
///
/// Shapes:  values [rows, columns]; one dimension is read as one row
/// Errors:  std::runtime_error "path: what is wrong" for anything but exactly such a file
inline array read(std::string const& path) {
  auto const need = [&path](bool good, char const* otherwise) {
    if (!good) throw std::runtime_error(path + ": " + otherwise);
  };
  std::ifstream file(path, std::ios::binary);
  need(file.is_open(), "cannot be opened");
  std::ostringstream buffer;
  need(static_cast<bool>(buffer << file.rdbuf()), "cannot be read, or is empty");
  std::string const bytes = buffer.str();
  auto const number = [&bytes](std::size_t at, std::size_t size) {  // little-endian
    std::uint32_t value = 0;
    while (size-- > 0) value = (value << 8) | static_cast<unsigned char>(bytes[at + size]);
    return value;
  };

  need(bytes.starts_with("\x93NUMPY"), "not an NPY file");
  need(bytes.size() >= 8, "ends within the header");
  unsigned const version = number(6, 2);  // major, then minor
  need(version == 1 || version == 2, "the NPY version is neither 1.0 nor 2.0");
  std::size_t const text = version == 1 ? 10 : 12;  // where the header's text begins
  need(bytes.size() >= text && bytes.size() - text >= number(8, text - 8),
       "ends within the header");
  std::size_t const data = text + number(8, text - 8);

  header in{std::string_view(bytes).substr(text, data - text)};
  std::string_view type;
  bool c_order = false;
  std::vector<std::int64_t> shape;
  bool good = in.take("{");
  for (int keys = 0; good && !in.take("}"); ++keys) {
    std::string_view const key = in.quoted();
    good = keys < 3 && in.take(":");
    if (key == "descr") {
      type = in.quoted();
    } else if (key == "fortran_order") {
      c_order = in.take("False");
      need(c_order || !in.take("True"), "not in C order");
    } else if (key == "shape" && in.take("(")) {
      while (good && !in.take(")")) {
        shape.push_back(in.length());
        good = shape.back() >= 0 && (in.take(",") || in.rest.starts_with(")"));
      }
    } else {
      good = false;
    }
    good = good && (in.take(",") || in.rest.starts_with("}"));
  }
  need(good && in.take("") && in.rest.empty(), "malformed header");
  need(!type.empty() && c_order, "the header lacks descr or fortran_order");
  need(type == "<f2" || type == "<f4", "the elements are neither <f2 nor <f4");
  need(shape.size() == 1 || shape.size() == 2, "the shape has neither one nor two dimensions");

  array a{shape.size() == 1 ? 1 : shape[0], shape.back(), {}};
  std::size_t const size = type == "<f2" ? 2 : 4;
  std::int64_t const most = std::numeric_limits<std::int64_t>::max() / std::int64_t(size);
  need(a.columns == 0 || a.rows <= most / a.columns, "the shape is too large");
  std::size_t const count = static_cast<std::size_t>(a.rows * a.columns);
  need(bytes.size() - data >= count * size, "the data are truncated");
  need(bytes.size() - data == count * size, "bytes after the data");
  a.values.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t const bits = number(data + i * size, size);
    __half const half(__half_raw{static_cast<unsigned short>(bits)});
    a.values[i] = size == 2 ? __half2float(half) : std::bit_cast<float>(bits);
  }
  return a;
}

/// Probabilities of n finite logits: the maximum taken off first, summed in double, rounded once.
inline std::vector<float> softmax(float const* logits, std::size_t n) {
  std::vector<double> e(n);
  double const largest = n == 0 ? 0.0 : *std::max_element(logits, logits + n);
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) sum += e[i] = std::exp(logits[i] - largest);
  std::vector<float> p(n);
  for (std::size_t i = 0; i < n; ++i) p[i] = static_cast<float>(e[i] / sum);
  return p;
}

}  // namespace npy
