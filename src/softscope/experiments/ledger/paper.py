"""What "Attention Is All You Need" says, for the claims that cite it; taken from the paper's source, not measured."""

NAME = "Vaswani et al. 2017, arXiv 1706.03762"

# Table 3, rows (B) and base: d_k → (perplexity, BLEU), newstest2013. Every row of the table is scaled by 1/√d_k.
TABLE_3_ROWS_B = {64: (4.92, 25.8), 32: (5.01, 25.4), 16: (5.16, 25.1)}
TABLE_3_UNSCALED_ROWS = 0

# The footnote on the variance of a dot product.
FOOTNOTE_NUMBER, FOOTNOTE_PAGE = 4, 4
FOOTNOTE = (
    "To illustrate why the dot products get large, assume that the components of q and k are independent random "
    "variables with mean 0 and variance 1. Then their dot product, q·k = Σ q_i k_i, has mean 0 and variance d_k."
)

EQUATION_1 = "softmax(QKᵀ/√d_k)V"

# Section 3.2.1: additive and dot-product attention perform alike at small d_k; at larger d_k additive beats the
# unscaled dot product. The paper cites this result; the experiment is not its own.
SAYS_ADDITIVE_WINS_AT_LARGE_D = True
ADDITIVE_SOURCE = "Britz et al. 2017, arXiv 1703.03906"
