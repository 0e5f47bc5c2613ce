"""Compiled formulas of cut_cross_entropy; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C_in, N_v, e, B_m, B_n, B_k):
    t0 = (C_in*T)
    t1 = (-(-(N_v)//(B_n)))
    t2 = (((t0*t1) + t0))
    t3 = (C_in*N_v)
    t4 = ((-(-(T)//(B_m)))*t3)
    t5 = (T*t1)
    t6 = ((T + t5))
    t7 = (e*t0)
    t8 = (2*t0)
    t9 = (((N_v*t8) + t8))
    t10 = (2*B_m)
    t11 = (B_k*t10)
    t12 = (B_k*B_m)
    t13 = (B_k*B_n)
    t14 = (B_m*B_n)
    t15 = ((t0 + t3))
    t16 = (((3*T) + t15))
    t17 = (((e*t3) + t7))
    t18 = (((16*T) + t17))
    return (T, t2, ((t0 + t4)), t6, T, T, t6, T, (((8*t5) + (28*T) + (e*t2) + (e*t4) + t7)), 0, t9, t9, (((N_v*T) + t5)), 0, 0, Maximum(((t10 + t11)), ((B_m + t12 + t13 + t14))), Maximum((((12*B_m) + (e*t11))), (((4*B_m) + (4*t14) + (e*t12) + (e*t13)))), (((2*T) + t15)), t16, t16, (((4*T) + t15)), (((12*T) + t17)), t18, t18, (((20*T) + t17)))
def f1(T, C_in, N_v, e, B_m, B_n, B_k):
    t0 = (-(-(T)//(B_m)))
    t1 = ((-(-(C_in)//(B_k)))*t0)
    t2 = (B_k*e)
    t3 = (B_m*t2)
    t4 = (2*t3)
    t5 = (8*T)
    t6 = (C_in*e)
    t7 = (T*t6)
    t8 = (4*T)
    t9 = (-(-(N_v)//(B_n)))
    t10 = (t1*t9)
    t11 = (t0*t9)
    t12 = (B_m*t11)
    t13 = (((B_n*t12) + t12))
    t14 = (B_n*t2)
    t15 = (4*B_m)
    t16 = (N_v*t6)
    t17 = (t8*t9)
    return (t1, 0, 0, 0, 0, (t1*t4), 0, t0, t1, 1, 0, (((12*B_m) + t4)), t5, t5, 1, t7, t7, 1, t7, t7, 1, t8, t8, 1, 0, 0, 0, 0, 0, 0, t0, 0, 1, 0, 0, t8, t8, 1, t10, t13, 0, 0, 0, (((t10*t14) + (t10*t3))), 0, t11, t10, 1, t13, (((B_n*t15) + t14 + t15 + t3)), (t7*t9), t7, 1, (t0*t16), t16, 1, t17, t8, 1, t17, t8, 1, 0, 0, 0, 0, 0, 0, t0, 0, 1, 0, (8*B_m), t8, t8, 1, t8, t8, 1, t8, t8, 1)
def f2(T, C_in, N_v, e, B_m, B_n, B_k):
    return (B_m, 1, B_k, 1, 1, 1, 1, B_m, B_n, B_k, 1, 1, 1, 1)
def f3(T, C_in, N_v, e):
    t0 = (C_in*N_v)
    t1 = (C_in*T)
    return ((((2*T) + t0 + t1)), (((12*T) + (e*t0) + (e*t1))))
def f4(T, C_in, N_v, e, B_m, B_n):
    t0 = (C_in*T)
    t1 = (-(-(N_v)//(B_n)))
    return ((((28*T) + (e*(((t0*t1) + t0))) + (e*t0) + (8*T*t1) + (C_in*N_v*e*(-(-(T)//(B_m)))))),)
def f5(T, C_in, N_v, e, B_m, B_n, B_k):
    t0 = (B_k*e)
    t1 = (B_m*t0)
    t2 = (4*B_m)
    return (Maximum((((2*t1) + (12*B_m))), (((B_n*t0) + (B_n*t2) + t1 + t2))),)
def f6(T, C_in, N_v, e, B_m, B_n):
    return ((((28*T) + (2*C_in*T*e))),)
def f7(T, C_in, N_v, e, B_m, B_n):
    t0 = (C_in*e)
    return ((((28*T) + (2*T*t0) + (N_v*(-(-(T)//(B_m)))*t0))),)
def f8(T, C_in, N_v, e):
    return (0,)
def f9(T, C_in, N_v, e, B_m, B_n, B_k):
    t0 = (2*B_m)
    return (Maximum((((B_k*t0) + t0)), ((B_m + (B_k*B_m) + (B_k*B_n) + (B_m*B_n)))),)
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), cross_entropy), ())': ('!CompiledQuantities', ('labels', 'X', 'W', 'LSE', 'label_logits', ), ('label_logits', 'LSE', 'loss', ), ('block_m', 'block_n', 'block_k', ), (), 4, ('!Formulas', ("#", f0, 25), (), (), ('block_m', 'block_n', 'block_k', )), None),
    'demands (00000 (forward, (), cross_entropy), ())': ('!Demands', (('!FoldedKernel', 'logits of the labels', (('row', 'single', 'term', ), ), (('labels', False, False, ), ('X', False, False, ), ('W', False, False, ), ('label_logits', False, False, ), ), None, False), ('!FoldedKernel', 'LSE = -inf', (), (('LSE', False, False, ), ), None, False), ('!FoldedKernel', 'log-sum-exps', (('row', 'word', 'term', ), ), (('X', False, False, ), ('W', False, False, ), ('LSE', False, False, ), ('LSE', False, False, ), ), None, False), ('!FoldedKernel', 'losses', (), (('LSE', False, False, ), ('label_logits', False, False, ), ('loss', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 82), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f2, 14), (), (), ('block_m', 'block_n', 'block_k', )), (), ('block_m', 'block_n', 'block_k', )),
    'compulsory (00000 (forward, (), cross_entropy), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
    'parts (00000 (forward, (), cross_entropy), (), B)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_k', 'in_features', None, False), ('!CutAxis', 'block_n', 'vocab_size', None, False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f4, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f5, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f6, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f7, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f8, 1), (), (), ())),
    'parts (00000 (forward, (), cross_entropy), (), elements)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_k', 'in_features', None, False), ('!CutAxis', 'block_n', 'vocab_size', None, False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f4, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f9, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f6, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f7, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f8, 1), (), (), ())),
}
