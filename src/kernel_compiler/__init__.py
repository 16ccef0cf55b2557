"""Makes the library of compiled kernels when Penstock is built. No part of what is installed."""
