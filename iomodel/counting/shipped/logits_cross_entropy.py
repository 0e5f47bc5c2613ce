"""Compiled formulas of logits_cross_entropy; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C_in, N_v, e, B_m, B_n, B_k):
    t0 = (T*(-(-(N_v)//(B_n))))
    t1 = (C_in*t0)
    t2 = (C_in*N_v)
    t3 = ((-(-(T)//(B_m)))*t2)
    t4 = (N_v*T)
    t5 = (16*T)
    t6 = (e*t4)
    t7 = (2*C_in*t4)
    t8 = (B_k*B_m)
    t9 = (B_k*B_n)
    t10 = (B_m*B_n)
    t11 = (C_in*T)
    t12 = ((t11 + t2 + t4))
    t13 = (((e*t11) + (e*t2) + t6))
    return (t1, t3, T, t4, t4, T, T, (((2*t6) + (e*t1) + (e*t3) + t5)), 0, t7, t7, ((t0 + t4)), 0, 0, Maximum(((3 + B_n)), ((t10 + t8 + t9))), Maximum(((16 + (B_n*e))), (((4*t10) + (e*t8) + (e*t9)))), ((T + t12)), (((3*T) + t12)), (((8*T) + t13)), ((t13 + t5)))
def f1(T, C_in, N_v, e, B_m, B_n, B_k):
    t0 = (-(-(N_v)//(B_n)))
    t1 = (-(-(T)//(B_m)))
    t2 = (t0*t1)
    t3 = ((-(-(C_in)//(B_k)))*t2)
    t4 = (B_k*B_m*e)
    t5 = (B_n*e)
    t6 = (B_k*t5)
    t7 = (T*t0)
    t8 = (C_in*e)
    t9 = (N_v*t8)
    t10 = (N_v*T*e)
    t11 = (8*T)
    t12 = (4*T)
    return (t3, 0, 0, 0, 0, (((t3*t4) + (t3*t6))), 0, t2, t3, 1, 0, (((4*B_m*B_n) + t4 + t6)), (t7*t8), (T*t8), 1, (t1*t9), t9, 1, t10, t10, 1, (((B_n*t7) + t7)), 0, 0, 0, 0, 0, T, 0, 1, 0, ((16 + t5)), t11, t11, 1, t10, t10, 1, t12, t12, 1, t12, t12, 1)
def f2(T, C_in, N_v, e, B_m, B_n, B_k):
    return (B_m, B_n, B_k, 1, 1, 1, 1)
def f3(T, C_in, N_v, e):
    t0 = (C_in*N_v)
    t1 = (C_in*T)
    return ((((3*T) + t0 + t1)), (((16*T) + (e*t0) + (e*t1))))
def f4(T, C_in, N_v, e, B_m, B_n):
    t0 = (N_v*e)
    return ((((16*T) + (2*T*t0) + (C_in*(-(-(T)//(B_m)))*t0) + (C_in*T*e*(-(-(N_v)//(B_n)))))),)
def f5(T, C_in, N_v, e, B_m, B_n, B_k):
    t0 = (B_n*e)
    return (Maximum(((16 + t0)), (((B_k*t0) + (4*B_m*B_n) + (B_k*B_m*e)))),)
def f6(T, C_in, N_v, e, B_m, B_n):
    return ((((16*T) + (2*N_v*T*e))),)
def f7(T, C_in, N_v, e, B_m, B_n):
    t0 = (N_v*e)
    return ((((16*T) + (2*T*t0) + (C_in*(-(-(T)//(B_m)))*t0))),)
def f8(T, C_in, N_v, e):
    return (0,)
def f9(T, C_in, N_v, e, B_m, B_n, B_k):
    return (Maximum(((3 + B_n)), (((B_k*B_m) + (B_k*B_n) + (B_m*B_n)))),)
def f10(T, C_in, N_v, e, B_m, B_n, B_k):
    t0 = (-(-(N_v)//(B_n)))
    t1 = (C_in*T)
    t2 = (2*t1)
    t3 = (-(-(T)//(B_m)))
    t4 = (C_in*N_v)
    t5 = (2*t4)
    t6 = (N_v*T)
    t7 = (2*t6)
    t8 = ((((-(-(C_in)//(B_m)))*t6) + ((-(-(C_in)//(B_n)))*t6) + t7))
    t9 = (12*T)
    t10 = (e*t4)
    t11 = (e*t1)
    t12 = (2*t10)
    t13 = (2*t11)
    t14 = (6*N_v*t1)
    t15 = (B_k*B_m)
    t16 = (B_k*B_n)
    t17 = (B_m*B_n)
    t18 = ((t4 + t6))
    t19 = ((t1 + t18))
    t20 = (2*T)
    t21 = ((t2 + t20))
    t22 = (e*t6)
    t23 = ((t10 + t22))
    t24 = ((t11 + t23))
    t25 = ((t13 + t9))
    return ((t0*t2), (t3*t5), T, t8, t7, T, t1, t4, (((e*t7) + (e*t8) + (t0*t13) + (t12*t3) + t10 + t11 + t9)), 0, t14, t14, (((T*t0) + t7)), 0, 0, Maximum(((3 + B_n)), ((t15 + t16 + t17))), Maximum(((16 + (B_n*e))), (((4*t17) + (e*t15) + (e*t16)))), ((T + t19)), ((t19 + t20)), ((t18 + t21)), ((t21 + t5 + t6)), (((8*T) + t24)), ((t24 + t9)), ((t23 + t25)), ((t12 + t22 + t25)))
def f11(T, C_in, N_v, e, B_m, B_n, B_k):
    t0 = (-(-(N_v)//(B_n)))
    t1 = (-(-(T)//(B_m)))
    t2 = (t0*t1)
    t3 = ((-(-(C_in)//(B_k)))*t2)
    t4 = (B_k*B_m*e)
    t5 = (B_n*e)
    t6 = (B_k*t5)
    t7 = (((4*B_m*B_n) + t4 + t6))
    t8 = (T*t0)
    t9 = (C_in*e)
    t10 = (t8*t9)
    t11 = (T*t9)
    t12 = (N_v*t9)
    t13 = (t1*t12)
    t14 = (N_v*T*e)
    t15 = (8*T)
    t16 = (4*T)
    t17 = (-(-(C_in)//(B_n)))
    t18 = (t1*t17)
    t19 = ((-(-(N_v)//(B_k)))*t18)
    t20 = (-(-(C_in)//(B_m)))
    t21 = (t0*t20)
    t22 = ((-(-(T)//(B_k)))*t21)
    return (t3, 0, 0, 0, 0, (((t3*t4) + (t3*t6))), 0, t2, t3, 1, 0, t7, t10, t11, 1, t13, t12, 1, t14, t14, 1, (((2*B_n*t8) + t8)), 0, 0, 0, 0, 0, T, 0, 1, 0, ((16 + t5)), t15, t15, 1, (2*t14), t14, 1, t14, t14, 1, t16, t16, 1, t19, 0, 0, 0, 0, (((t19*t4) + (t19*t6))), 0, t18, t19, 1, 0, t7, (t14*t17), t14, 1, t13, t12, 1, t11, t11, 1, t22, 0, 0, 0, 0, (((t22*t4) + (t22*t6))), 0, t21, t22, 1, 0, t7, t10, t11, 1, (t14*t20), t14, 1, t12, t12, 1)
def f12(T, C_in, N_v, e, B_m, B_n, B_k):
    return (B_m, B_n, B_k, 1, 1, 1, 1, B_m, B_n, B_k, 1, 1, B_m, B_n, B_k, 1, 1)
def f13(T, C_in, N_v, e):
    t0 = (2*T)
    t1 = (2*C_in*N_v)
    t2 = (C_in*t0)
    return (((t0 + t1 + t2)), (((12*T) + (e*t1) + (e*t2))))
def f14(T, C_in, N_v, e):
    return (Maximum(C_in, T), C_in, T)
def f15(T, C_in, N_v, e):
    return (Maximum(C_in, N_v), C_in, N_v)
def f16(T, C_in, N_v, e):
    return (Maximum(C_in, N_v, T), C_in, N_v, T)
def f17(T, C_in, N_v, e, B_m, B_n):
    t0 = (C_in*e)
    t1 = (N_v*t0)
    t2 = (T*t0)
    t3 = (N_v*T)
    t4 = (2*t3)
    return ((((12*T) + (e*((((-(-(C_in)//(B_m)))*t3) + ((-(-(C_in)//(B_n)))*t3) + t4))) + (e*t4) + (2*(-(-(N_v)//(B_n)))*t2) + (2*(-(-(T)//(B_m)))*t1) + t1 + t2)),)
def f18(T, C_in, N_v, e, B_m, B_n):
    t0 = (C_in*e)
    return ((((12*T) + (N_v*t0) + (T*t0) + (4*N_v*T*e))),)
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), cross_entropy), ((adds_dw, False)))': ('!CompiledQuantities', ('X', 'W', 'labels', 'logits', ), ('logits', 'LSE', 'loss', ), ('block_m', 'block_n', 'block_k', ), (), 2, ('!Formulas', ("#", f0, 20), (), (), ('block_m', 'block_n', 'block_k', )), None),
    'demands (00000 (forward, (), cross_entropy), ((adds_dw, False)))': ('!Demands', (('!FoldedKernel', 'logits = X W', (('row', 'word', 'term', ), ), (('X', False, False, ), ('W', False, False, ), ('logits', False, False, ), ), None, False), ('!FoldedKernel', 'losses', (), (('labels', False, False, ), ('logits', False, False, ), ('LSE', False, False, ), ('loss', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 44), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f2, 7), (), (), ('block_m', 'block_n', 'block_k', )), (), ('block_m', 'block_n', 'block_k', )),
    'compulsory (00000 (forward, (), cross_entropy), ((adds_dw, False)))': ('!Formulas', ("#", f3, 2), (), (), ()),
    'parts (00000 (forward, (), cross_entropy), ((adds_dw, False)), B)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_n', 'vocab_size', None, False), ('!CutAxis', 'block_k', 'in_features', None, False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f4, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f5, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f6, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f7, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f8, 1), (), (), ())),
    'parts (00000 (forward, (), cross_entropy), ((adds_dw, False)), elements)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_n', 'vocab_size', None, False), ('!CutAxis', 'block_k', 'in_features', None, False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f4, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f9, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f6, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f7, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f8, 1), (), (), ())),
    'quantities (00000 (forward, (gradients), cross_entropy), ((adds_dw, False)))': ('!CompiledQuantities', ('X', 'W', 'labels', 'logits', ), ('logits', 'loss', 'dX', 'dW', ), ('block_m', 'block_n', 'block_k', ), (), 4, ('!Formulas', ("#", f10, 25), (), (), ('block_m', 'block_n', 'block_k', )), None),
    'demands (00000 (forward, (gradients), cross_entropy), ((adds_dw, False)))': ('!Demands', (('!FoldedKernel', 'logits = X W', (('row', 'word', 'term', ), ), (('X', False, False, ), ('W', False, False, ), ('logits', False, False, ), ), None, False), ('!FoldedKernel', 'losses', (), (('labels', False, False, ), ('logits', False, False, ), ('logits', False, False, ), ('loss', False, False, ), ), None, False), ('!FoldedKernel', 'dX', (('row', 'term', 'word', ), ), (('logits', False, False, ), ('W', False, False, ), ('dX', False, False, ), ), None, False), ('!FoldedKernel', 'dW', (('term', 'word', 'row', ), ), (('X', False, False, ), ('logits', False, False, ), ('dW', False, False, ), ), None, False), ), ('!Formulas', ("#", f11, 86), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f12, 17), (), (), ('block_m', 'block_n', 'block_k', )), (), ('block_m', 'block_n', 'block_k', )),
    'compulsory (00000 (forward, (gradients), cross_entropy), ((adds_dw, False)))': ('!Formulas', ("#", f13, 2), (), (), ()),
    'parts (00000 (forward, (gradients), cross_entropy), ((adds_dw, False)), B)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', '', ('!Formulas', ("#", f14, 3), (), (), ()), False), ('!CutAxis', 'block_n', '', ('!Formulas', ("#", f15, 3), (), (), ()), False), ('!CutAxis', 'block_k', '', ('!Formulas', ("#", f16, 4), (), (), ()), False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f17, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f5, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f18, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f18, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f8, 1), (), (), ())),
    'parts (00000 (forward, (gradients), cross_entropy), ((adds_dw, False)), elements)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', '', ('!Formulas', ("#", f14, 3), (), (), ()), False), ('!CutAxis', 'block_n', '', ('!Formulas', ("#", f15, 3), (), (), ()), False), ('!CutAxis', 'block_k', '', ('!Formulas', ("#", f16, 4), (), (), ()), False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f17, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f9, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f18, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f18, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f8, 1), (), (), ())),
}
