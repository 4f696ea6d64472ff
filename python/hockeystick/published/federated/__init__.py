"""Sun, Shen and Tao 2024, as printed: theorems, the sensitivities of Table 3, and the comparison of Table 4."""
