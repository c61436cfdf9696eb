#include "cut.inc"
