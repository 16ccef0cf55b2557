"""How functions are compiled and kept, and the compiled ones that know no protocol."""
