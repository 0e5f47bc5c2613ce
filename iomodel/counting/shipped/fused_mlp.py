"""Compiled formulas of fused_mlp; written by `python -m tests.support.shipped_formulas`."""
def f0(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (T*g)
    t1 = (C_in*t0)
    t2 = ((-(-(C_h)//(B_n)))*t1)
    t3 = (C_h*C_in*g)
    t4 = ((-(-(T)//(B_m)))*t3)
    t5 = ((t1 + t2))
    t6 = (e*t1)
    t7 = (4*C_in)
    t8 = (C_h*t0)
    t9 = (t7*t8)
    t10 = (B_k*B_m)
    t11 = (B_k*B_n)
    t12 = (B_m*B_n)
    t13 = Ratio((b_w*t11), 32)
    t14 = (2*t3)
    t15 = (((2*t1) + t14))
    t16 = (((t0*t7) + (-(-((b_w*t3))//(16)))))
    t17 = ((t16 + t6))
    return (t2, t4, t4, t5, t5, t1, (((8*t1) + (8*t2) + (e*t2) + (-(-((b_w*t4))//(16))) + t6)), t2, t9, t9, t8, 0, 0, Maximum(C_in, ((t10 + t11 + t12))), (-(-(Maximum(t7, (((4*t12) + Maximum((((4*t10) + t13)), (((e*t10) + t13)))))))//(1))), t15, t15, (((3*t1) + t14)), t17, t17, (((2*t6) + t16)))
def f1(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (T*g)
    t1 = (4*C_in)
    t2 = (t0*t1)
    t3 = (-(-(C_h)//(B_n)))
    t4 = (g*(-(-(T)//(B_m))))
    t5 = (t3*t4)
    t6 = ((-(-(C_in)//(B_k)))*t5)
    t7 = (B_m*B_n*t5)
    t8 = (B_k*B_m*e)
    t9 = (B_k*B_n*b_w)
    t10 = (t2*t3)
    t11 = (4*B_m)
    t12 = Ratio(t9, 32)
    t13 = (C_in*e*t0)
    t14 = (C_h*C_in*b_w)
    t15 = (-(-((t14*t4))//(32)))
    t16 = (-(-((g*t14))//(32)))
    return (0, 0, 0, 0, 0, 0, t0, 0, 1, 0, 0, t2, t2, 1, t6, t6, t7, 0, 0, 0, (((t6*t8) + (-(-((t6*t9))//(16))))), t10, t5, (2*t6), 1, t7, (((B_n*t11) + (-(-(Maximum((((B_k*t11) + t12)), ((t12 + t8))))//(1))))), (t13*t3), t13, 1, t15, t16, 1, t15, t16, 1, t10, t2, 1, t10, t2, 1, 0, 0, 0, 0, 0, 0, t0, 0, 1, 0, t1, t2, t2, 1, t13, t13, 1)
def f2(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    return (1, 1, B_m, B_n, B_k, B_m, B_k, B_n, 1, 1, 1, 1)
def f3(g, T, C_in, C_h, e, b_w):
    t0 = (2*C_in*g)
    t1 = (T*t0)
    return ((((C_h*t0) + t1)), (((e*t1) + (-(-((C_h*C_in*b_w*g))//(16))))))
def f4(g, T, C_in, C_h, e, b_w, B_m, B_n):
    t0 = (C_in*g)
    t1 = (T*(-(-(C_h)//(B_n)))*t0)
    return ((((8*t1) + (e*t1) + (-(-((C_h*b_w*(-(-(T)//(B_m)))*t0))//(16))))),)
def f5(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (4*B_m)
    t1 = Ratio((B_k*B_n*b_w), 32)
    return ((((B_n*t0) + (-(-(Maximum((((B_k*t0) + t1)), (((B_k*B_m*e) + t1))))//(1))))),)
def f6(g, T, C_in, C_h, e, b_w, B_m, B_n):
    return (0,)
def f7(g, T, C_in, C_h, e, b_w, B_m, B_n):
    return ((-(-((C_h*C_in*b_w*g*(-(-(T)//(B_m)))))//(16))),)
def f8(g, T, C_in, C_h, e, b_w):
    return ((4*C_in),)
def f9(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    return ((((B_k*B_m) + (B_k*B_n) + (B_m*B_n))),)
def f10(g, T, C_in, C_h, e, b_w):
    return (C_in,)
def f11(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (T*g)
    t1 = (C_in*t0)
    t2 = ((-(-(C_h)//(B_n)))*t1)
    t3 = (C_h*C_in*g)
    t4 = ((-(-(T)//(B_m)))*t3)
    t5 = ((t1 + t2))
    t6 = (e*t1)
    t7 = (6*C_h*t1)
    t8 = (B_k*B_m)
    t9 = (2*B_n)
    t10 = (4*C_in)
    t11 = (B_k*B_n*b_w)
    t12 = (3*t3)
    t13 = (((2*t1) + t12))
    t14 = (((t0*t10) + (-(-((b_w*t12))//(32)))))
    t15 = ((t14 + t6))
    return (t2, t4, t4, t4, t5, t5, t1, (((8*t1) + (8*t2) + (e*t2) + (-(-((3*b_w*t4))//(32))) + t6)), t2, t7, t7, (C_h*t0), 0, 0, Maximum(C_in, (((B_k*t9) + (B_m*t9) + t8))), (-(-(Maximum(t10, (((8*B_m*B_n) + Maximum((((4*t8) + Ratio(t11, 32))), (((e*t8) + Ratio(t11, 16))))))))//(1))), t13, t13, (((3*t1) + t12)), t15, t15, (((2*t6) + t14)))
def f12(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (T*g)
    t1 = (4*C_in)
    t2 = (t0*t1)
    t3 = (-(-(C_h)//(B_n)))
    t4 = (g*(-(-(T)//(B_m))))
    t5 = (t3*t4)
    t6 = ((-(-(C_in)//(B_k)))*t5)
    t7 = (B_m*B_n)
    t8 = (t5*t7)
    t9 = (B_k*B_m)
    t10 = (e*t9)
    t11 = (B_k*B_n*b_w)
    t12 = (t2*t3)
    t13 = (C_in*e*t0)
    t14 = (C_h*C_in*b_w)
    t15 = (-(-((t14*t4))//(32)))
    t16 = (-(-((g*t14))//(32)))
    return (0, 0, 0, 0, 0, 0, t0, 0, 1, 0, 0, t2, t2, 1, t6, t6, t6, t8, 0, 0, 0, (((t10*t6) + (-(-((3*t11*t6))//(32))))), t12, t5, (2*t6), 1, t8, (((8*t7) + (-(-(Maximum((((4*t9) + Ratio(t11, 32))), ((t10 + Ratio(t11, 16)))))//(1))))), (t13*t3), t13, 1, t15, t16, 1, t15, t16, 1, t15, t16, 1, t12, t2, 1, t12, t2, 1, 0, 0, 0, 0, 0, 0, t0, 0, 1, 0, t1, t2, t2, 1, t13, t13, 1)
def f13(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    return (1, 1, B_m, B_n, B_k, B_m, B_n, B_k, B_m, B_k, B_n, 1, 1, 1, 1)
def f14(g, T, C_in, C_h, e, b_w):
    t0 = (C_in*g)
    t1 = (3*C_h*t0)
    t2 = (2*T*t0)
    return (((t1 + t2)), (((e*t2) + (-(-((b_w*t1))//(32))))))
def f15(g, T, C_in, C_h, e, b_w, B_m, B_n):
    t0 = (C_in*g)
    t1 = (T*(-(-(C_h)//(B_n)))*t0)
    return ((((8*t1) + (e*t1) + (-(-((3*C_h*b_w*(-(-(T)//(B_m)))*t0))//(32))))),)
def f16(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (B_k*B_m)
    t1 = (B_k*B_n*b_w)
    return ((((8*B_m*B_n) + (-(-(Maximum((((4*t0) + Ratio(t1, 32))), (((e*t0) + Ratio(t1, 16)))))//(1))))),)
def f17(g, T, C_in, C_h, e, b_w, B_m, B_n):
    return ((-(-((3*C_h*C_in*b_w*g*(-(-(T)//(B_m)))))//(32))),)
def f18(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (2*B_n)
    return ((((B_k*B_m) + (B_k*t0) + (B_m*t0))),)
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), mlp), ((resident, False)))': ('!CompiledQuantities', ('X', 'W_up', 'W_down', 'Y_acc', ), ('Y_acc', 'Y', ), ('block_m', 'block_n', 'block_k', ), (), 3, ('!Formulas', ("#", f0, 21), (), (), ('block_m', 'block_n', 'block_k', )), None),
    'demands (00000 (forward, (), mlp), ((resident, False)))': ('!Demands', (('!FoldedKernel', 'sums = 0', (), (('Y_acc', False, False, ), ), None, False), ('!FoldedKernel', 'Y = act(X W_up) W_down', (('row', 'hidden', 'term', ), ('row', 'column', 'hidden', ), ), (('X', False, False, ), ('W_up', False, False, ), ('W_down', False, False, ), ('Y_acc', False, False, ), ('Y_acc', False, False, ), ), None, False), ('!FoldedKernel', 'convert', (), (('Y_acc', False, False, ), ('Y', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 59), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f2, 12), (), (), ('block_m', 'block_n', 'block_k', )), (), ('block_m', 'block_n', 'block_k', )),
    'compulsory (00000 (forward, (), mlp), ((resident, False)))': ('!Formulas', ("#", f3, 2), (), (), ()),
    'parts (00000 (forward, (), mlp), ((resident, False)), B)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_n', 'hidden_features', None, False), ('!CutAxis', 'block_k', 'in_features', None, False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f4, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f5, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f6, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f7, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f8, 1), (), (), ())),
    'parts (00000 (forward, (), mlp), ((resident, False)), elements)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_n', 'hidden_features', None, False), ('!CutAxis', 'block_k', 'in_features', None, False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f4, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f9, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f6, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f7, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f10, 1), (), (), ())),
    'quantities (00000 (forward, (gated), mlp), ((resident, False)))': ('!CompiledQuantities', ('X', 'W_gate', 'W_up', 'W_down', 'Y_acc', ), ('Y_acc', 'Y', ), ('block_m', 'block_n', 'block_k', ), (), 3, ('!Formulas', ("#", f11, 22), (), (), ('block_m', 'block_n', 'block_k', )), None),
    'demands (00000 (forward, (gated), mlp), ((resident, False)))': ('!Demands', (('!FoldedKernel', 'sums = 0', (), (('Y_acc', False, False, ), ), None, False), ('!FoldedKernel', 'Y = (act(X W_gate) * (X W_up)) W_down', (('row', 'hidden', 'term', ), ('row', 'hidden', 'term', ), ('row', 'column', 'hidden', ), ), (('X', False, False, ), ('W_gate', False, False, ), ('W_up', False, False, ), ('W_down', False, False, ), ('Y_acc', False, False, ), ('Y_acc', False, False, ), ), None, False), ('!FoldedKernel', 'convert', (), (('Y_acc', False, False, ), ('Y', False, False, ), ), None, False), ), ('!Formulas', ("#", f12, 63), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f13, 15), (), (), ('block_m', 'block_n', 'block_k', )), (), ('block_m', 'block_n', 'block_k', )),
    'compulsory (00000 (forward, (gated), mlp), ((resident, False)))': ('!Formulas', ("#", f14, 2), (), (), ()),
    'parts (00000 (forward, (gated), mlp), ((resident, False)), B)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_n', 'hidden_features', None, False), ('!CutAxis', 'block_k', 'in_features', None, False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f15, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f16, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f6, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f17, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f8, 1), (), (), ())),
    'parts (00000 (forward, (gated), mlp), ((resident, False)), elements)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_n', 'hidden_features', None, False), ('!CutAxis', 'block_k', 'in_features', None, False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f15, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f18, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f6, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f17, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f10, 1), (), (), ())),
}
