"""Figures of the papers, as printed.

`SELECTED`, `LEAST`, `RMSE`, `COUNTS` and `SECONDS` are Tables 2 to 6 of Sarafis, Diou and
Delopoulos, "Span error bound for weighted SVM with applications in hyperparameter selection". The
splits of most sets are not known.

`EXACT_ERRORS` and `EXACT_SECONDS` are Tables 2 and 3 of Franc, Laskov and Mueller, "Stopping
conditions for exact computation of leave-one-out error in support vector machines", 2008.
"""

CRITERIA = ("span_error", "span_bound", "cv5_error", "xi_alpha")

# Tables 2 and 3: test error of the model that each criterion selects, and the least of the grid.
SELECTED = {
    "breast_cancer": (0.0360, 0.0395, 0.0377, 0.0360),
    "mushrooms": (0.0151, 0.0154, 0.0456, 0.0623),
    "ida_waveform": (0.1141, 0.1226, 0.1104, 0.1422),
    "ida_banana": (0.2324, 0.4476, 0.2324, 0.4476),
    "skin_nonskin": (0.0086, 0.0143, 0.0131, 0.0104),
    "splice": (0.1080, 0.1237, 0.1085, 0.1591),
    "ida_image": (0.0623, 0.1158, 0.0623, 0.0852),
    "a1a": (0.1585, 0.2405, 0.1628, 0.2405),
    "mnist_2_9": (0.0049, 0.0103, 0.0059, 0.0103),
    "mnist_1_7": (0.0042, 0.0065, 0.0042, 0.0065),
    "mnist_3_6": (0.0020, 0.0030, 0.0030, 0.0091),
    "mnist_0_8": (0.0067, 0.0061, 0.0061, 0.0092),
    "parkinson": (0.3865, 0.5000, 0.4000, 0.5134),
    "bank": (0.2218, 0.2801, 0.2297, 0.2803),
}
LEAST = {
    "breast_cancer": 0.0292,
    "mushrooms": 0.0133,
    "ida_waveform": 0.1052,
    "ida_banana": 0.2324,
    "skin_nonskin": 0.0061,
    "splice": 0.1016,
    "ida_image": 0.0623,
    "a1a": 0.1557,
    "mnist_2_9": 0.0049,
    "mnist_1_7": 0.0032,
    "mnist_3_6": 0.0020,
    "mnist_0_8": 0.0051,
    "parkinson": 0.3692,
    "bank": 0.2218,
}

# Table 4: root-mean-square error of span-rule, cross-validation and xi-alpha over the grid.
RMSE = {
    "breast_cancer": (0.0229, 0.0494, 0.0419),
    "mushrooms": (0.0151, 0.0384, 0.1046),
    "ida_waveform": (0.0256, 0.0271, 0.0912),
    "ida_banana": (0.0150, 0.0128, 0.2150),
    "skin_nonskin": (0.0204, 0.0496, 0.0884),
    "splice": (0.0156, 0.0199, 0.2135),
    "ida_image": (0.0134, 0.0213, 0.1251),
    "a1a": (0.0066, 0.0136, 0.1495),
    "mnist_2_9": (0.0108, 0.0229, 0.0539),
    "mnist_1_7": (0.0060, 0.0198, 0.0404),
    "mnist_3_6": (0.0068, 0.0188, 0.0389),
    "mnist_0_8": (0.0077, 0.0182, 0.0420),
    "parkinson": (0.0152, 0.0134, 0.2167),
    "bank": (0.0163, 0.0824, 0.1730),
}

# Table 5: means over the grid of rows without a box span, in-bound and all support vectors.
COUNTS = {
    "breast_cancer": (0.128, 4.6, 33.3),
    "mushrooms": (0.0, 27.6, 93.0),
    "ida_waveform": (0.003, 16.0, 188.7),
    "ida_banana": (0.0, 17.2, 277.3),
    "skin_nonskin": (0.197, 7.3, 167.9),
    "splice": (0.0, 148.2, 581.3),
    "ida_image": (0.004, 18.8, 640.9),
    "a1a": (0.0, 125.8, 825.9),
    "mnist_2_9": (0.0, 134.6, 2368.5),
    "mnist_1_7": (0.0, 68.6, 2210.4),
    "mnist_3_6": (0.0, 105.8, 1935.2),
    "mnist_0_8": (0.0, 115.5, 2028.6),
    "parkinson": (0.041, 16.1, 416.4),
    "bank": (0.222, 12.5, 250.9),
}

# Table 6: mean seconds of the spans and of 5-fold cross-validation.
SECONDS = {
    "breast_cancer": (0.031, 0.011),
    "mushrooms": (0.104, 0.056),
    "ida_waveform": (0.139, 0.090),
    "ida_banana": (0.213, 0.096),
    "skin_nonskin": (0.108, 0.088),
    "splice": (7.637, 1.136),
    "ida_image": (0.416, 0.436),
    "a1a": (5.567, 0.990),
    "mnist_2_9": (10.423, 123.380),
    "mnist_1_7": (3.069, 106.304),
    "mnist_3_6": (5.116, 108.798),
    "mnist_0_8": (6.410, 130.957),
    "parkinson": (0.278, 0.167),
    "bank": (0.165, 0.060),
}

# Table 2, for the linear and the RBF kernel, in percent: leave-one-out error, test error and its
# standard deviation.
EXACT_ERRORS = {
    "ida_banana": ((41.40, 47.80, 4.58), (8.55, 10.43, 0.44)),
    "ida_breast_cancer": ((27.20, 29.00, 4.83), (23.00, 26.06, 4.91)),
    "ida_diabetis": ((22.05, 23.44, 1.70), (21.50, 23.27, 1.65)),
    "ida_flare_solar": ((32.85, 32.33, 1.82), (32.31, 34.04, 2.04)),
    "ida_german": ((24.91, 24.06, 2.22), (23.71, 23.61, 2.23)),
    "ida_heart": ((14.24, 15.22, 3.22), (13.53, 15.55, 3.36)),
    "ida_image": ((15.48, 15.34, 0.84), (2.94, 3.15, 0.63)),
    "ida_ringnorm": ((23.45, 24.59, 0.67), (1.10, 1.60, 0.11)),
    "splice": ((15.36, 16.20, 0.59), (10.60, 10.95, 0.64)),
    "ida_thyroid": ((8.43, 10.16, 2.60), (2.29, 4.87, 2.28)),
    "ida_titanic": ((21.20, 23.01, 4.62), (15.47, 23.99, 3.47)),
    "ida_twonorm": ((2.50, 2.90, 0.27), (2.25, 2.59, 0.18)),
    "ida_waveform": ((10.90, 12.95, 0.54), (8.85, 10.50, 0.43)),
}
# Table 3, for the same kernels: seconds of the standard approach for all leave-one-out errors that
# the selection needs, the speed-up by the stopping rule, and the percentage of fits that it stops.
EXACT_SECONDS = {
    "ida_banana": ((728.0, 9.9, 56.9), (1565.1, 5.1, 81.9)),
    "ida_breast_cancer": ((128.7, 2.0, 64.2), (265.9, 1.5, 55.6)),
    "ida_diabetis": ((3705.3, 6.3, 93.1), (3163.6, 1.4, 54.8)),
    "ida_flare_solar": ((61.5, 1.0, 59.3), (2263.0, 2.2, 50.3)),
    "ida_german": ((47603.8, 4.2, 82.0), (6513.7, 1.1, 31.3)),
    "ida_heart": ((280.7, 1.9, 83.1), (59.5, 1.1, 50.3)),
    "ida_image": ((114373.9, 12.9, 98.3), (10852.7, 2.9, 75.3)),
    "ida_ringnorm": ((11632.8, 2.8, 91.8), (277.2, 1.4, 39.1)),
    "splice": ((41072.8, 1.5, 74.5), (6360.3, 1.0, 14.6)),
    "ida_thyroid": ((21.6, 3.2, 66.0), (10.3, 1.5, 80.3)),
    "ida_titanic": ((0.8, 1.0, 17.6), (25.5, 5.7, 50.2)),
    "ida_twonorm": ((52.8, 1.9, 89.1), (175.3, 1.0, 22.2)),
    "ida_waveform": ((3422.8, 2.4, 90.7), (345.6, 1.1, 30.9)),
}

# Table 4.1 of Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with
# the RBF kernel", 2003, for the L1-SVM and the L2-SVM: numbers of values and of gradients, and the
# test accuracy in percent. The set "tree" is left out.
RADIUS_MARGIN = {
    "ida_banana": ((9, 6, 88.96), (8, 5, 88.53)),
    "ida_image": ((17, 13, 96.24), (11, 6, 97.03)),
    "splice": ((13, 12, 89.84), (21, 19, 89.84)),
    "ida_waveform": ((16, 13, 88.57), (8, 7, 89.83)),
    "ijcnn1": ((9, 9, 97.09), (7, 7, 97.83)),
}

# Tables 2.1, 2.2 and 3.1 of the same paper: the test error in percent where a value is least along
# a line, and ln sigma^2 or ln C there. Of the L1-SVM the values are the test error and eqs. 1.9,
# 3.1, 3.2, 3.3 and 3.3 with half of the penalty; of the L2-SVM the test error, the radius-margin
# bound and eqs. 2.5 and 2.7. Two numbers differ between Tables 2.1 and 2.2: the test error of the
# radius-margin bound of splice is 10.2 in the former and 10.1 in the latter, which stands here.
_TWO_LINES = [(svm, varied) for varied in ("ln_sigma2", "ln_C") for svm in ("l1", "l2")]
_PRINTED = {
    "ida_banana": (
        ((10.4, 0.6), (55.9, 10.0), (35.2, -6.6), (35.2, -6.6), (35.2, -6.6), (35.2, -6.6)),
        ((11.2, -1.4), (11.4, -1.6), (11.4, -1.6), (11.4, -1.6)),
        ((10.4, 5.2), (38.4, -2.9), (22.8, -1.2), (55.9, -10.0), (20.2, -0.8), (36.2, -2.3)),
        ((11.2, 0.0), (11.2, -0.9), (11.5, -1.5), (11.8, -2.1)),
    ),
    "ida_image": (
        ((1.9, 1.0), (25.6, 10.0), (3.77, -1.2), (3.8, -1.2), (3.8, -1.2), (3.8, -1.2)),
        ((2.4, 0.5), (3.0, -0.3), (3.0, -0.3), (27.2, 9.5)),
        ((1.9, 3.9), (12.9, -2.9), (8.0, -1.3), (7.2, -1.0), (4.9, -0.4), (9.0, -1.4)),
        ((2.2, 2.4), (3.0, 0.4), (3.7, -0.7), (5.6, -1.8)),
    ),
    "splice": (
        ((9.5, 3.4), (15.5, 8.1), (9.6, 3.2), (14.2, 6.1), (10.0, 3.1), (10.0, 3.1)),
        ((9.5, 3.3), (10.0, 3.1), (10.0, 3.1), (10.0, 3.1)),
        ((9.5, 0.4), (19.5, -2.4), (11.4, -0.7), (9.7, 10.0), (9.7, 10.0), (10.0, 10.0)),
        ((10.1, 2.1), (10.1, 10.0), (12.5, -1.4), (48.0, -10.0)),
    ),
    "ida_waveform": (
        ((10.2, 3.2), (15.3, 8.0), (13.5, 6.8), (11.4, 1.4), (11.4, 1.4), (11.4, 1.4)),
        ((9.9, 2.7), (10.3, 2.1), (12.7, 5.6), (13.5, 6.5)),
        ((10.2, 1.4), (14.1, -2.5), (11.4, -1.1), (11.3, -0.6), (11.3, -0.5), (11.6, -1.2)),
        ((10.0, 0.0), (10.0, -0.6), (10.5, -1.4), (11.2, -2.2)),
    ),
}
LINES = {name: dict(zip(_TWO_LINES, lines, strict=True)) for name, lines in _PRINTED.items()}
