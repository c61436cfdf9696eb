#include "cases.inc"
