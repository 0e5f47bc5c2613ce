"""Compiled formulas of split_mlp; written by `python -m tests.support.shipped_formulas`."""
def f0(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (T*g)
    t1 = (C_in*t0)
    t2 = ((-(-(C_h)//(B_n)))*t1)
    t3 = (C_h*C_in*g)
    t4 = ((-(-(T)//(B_m)))*t3)
    t5 = (C_h*t0)
    t6 = ((-(-(C_in)//(B_n)))*t5)
    t7 = (e*t5)
    t8 = (e*t1)
    t9 = (4*C_in*t5)
    t10 = (B_k*B_m)
    t11 = (B_k*B_n)
    t12 = (B_m*B_n)
    t13 = (((2*t3) + t5))
    t14 = (((-(-((b_w*t3))//(16))) + t7))
    return (t2, t4, t6, t4, t5, t1, (((e*t2) + (e*t6) + (-(-((b_w*t4))//(16))) + t7 + t8)), 0, t9, t9, t5, 0, 0, ((t10 + t11 + t12)), (((4*t12) + (e*t10) + (-(-((b_w*t11))//(32))))), ((t1 + t13)), (((2*t1) + t13)), ((t14 + t8)), (((2*t8) + t14)))
def f1(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (-(-(C_h)//(B_n)))
    t1 = (g*(-(-(T)//(B_m))))
    t2 = (t0*t1)
    t3 = ((-(-(C_in)//(B_k)))*t2)
    t4 = (B_m*B_n)
    t5 = (t2*t4)
    t6 = (B_k*B_m*e)
    t7 = (B_k*B_n*b_w)
    t8 = (((4*t4) + (-(-(t7)//(32))) + t6))
    t9 = (C_in*g)
    t10 = (T*e)
    t11 = (t10*t9)
    t12 = (C_h*b_w)
    t13 = (-(-((C_in*t1*t12))//(32)))
    t14 = (-(-((t12*t9))//(32)))
    t15 = (C_h*g*t10)
    t16 = (-(-(C_in)//(B_n)))
    t17 = (t1*t16)
    t18 = ((-(-(C_h)//(B_k)))*t17)
    return (t3, t5, 0, 0, 0, (((t3*t6) + (-(-((t3*t7))//(32))))), 0, t2, t3, 1, t5, t8, (t0*t11), t11, 1, t13, t14, 1, t15, t15, 1, t18, 0, 0, 0, 0, (((t18*t6) + (-(-((t18*t7))//(32))))), 0, t17, t18, 1, 0, t8, (t15*t16), t15, 1, t13, t14, 1, t11, t11, 1)
def f2(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    return (B_m, B_n, B_k, 1, 1, B_m, B_n, B_k, 1, 1)
def f3(g, T, C_in, C_h, e, b_w):
    t0 = (2*C_in*g)
    t1 = (T*t0)
    return ((((C_h*t0) + t1)), (((e*t1) + (-(-((C_h*C_in*b_w*g))//(16))))))
def f4(g, T, C_in, C_h, e, b_w):
    return (Maximum(C_h, C_in),)
def f5(g, T, C_in, C_h, e, b_w, B_m, B_n):
    t0 = (C_h*g)
    t1 = (T*e)
    t2 = (t0*t1)
    t3 = (C_in*g*t1)
    return (((((-(-(C_h)//(B_n)))*t3) + ((-(-(C_in)//(B_n)))*t2) + (-(-((C_in*b_w*(-(-(T)//(B_m)))*t0))//(16))) + t2 + t3)),)
def f6(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    return ((((4*B_m*B_n) + (B_k*B_m*e) + (-(-((B_k*B_n*b_w))//(32))))),)
def f7(g, T, C_in, C_h, e, b_w, B_m, B_n):
    t0 = (T*e*g)
    return ((((C_h*t0) + (C_in*t0))),)
def f8(g, T, C_in, C_h, e, b_w, B_m, B_n):
    t0 = (C_h*g)
    t1 = (T*e)
    return ((((t0*t1) + (C_in*g*t1) + (-(-((C_in*b_w*(-(-(T)//(B_m)))*t0))//(16))))),)
def f9(g, T, C_in, C_h, e, b_w):
    return (0,)
def f10(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    return ((((B_k*B_m) + (B_k*B_n) + (B_m*B_n))),)
def f11(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (T*g)
    t1 = (C_in*t0)
    t2 = ((-(-(C_h)//(B_n)))*t1)
    t3 = (C_h*C_in*g)
    t4 = ((-(-(T)//(B_m)))*t3)
    t5 = (C_h*t0)
    t6 = ((-(-(C_in)//(B_n)))*t5)
    t7 = (e*t5)
    t8 = (e*t1)
    t9 = (6*C_in*t5)
    t10 = (B_k*B_m)
    t11 = (2*B_n)
    t12 = (3*t3)
    t13 = ((t12 + t5))
    t14 = (((-(-((b_w*t12))//(32))) + t7))
    return (t2, t4, t4, t6, t4, t5, t1, (((e*t2) + (e*t6) + (-(-((3*b_w*t4))//(32))) + t7 + t8)), 0, t9, t9, t5, 0, 0, (((B_k*t11) + (B_m*t11) + t10)), (((e*t10) + (8*B_m*B_n) + (-(-((B_k*B_n*b_w))//(16))))), ((t1 + t13)), (((2*t1) + t13)), ((t14 + t8)), (((2*t8) + t14)))
def f12(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (-(-(C_h)//(B_n)))
    t1 = (g*(-(-(T)//(B_m))))
    t2 = (t0*t1)
    t3 = ((-(-(C_in)//(B_k)))*t2)
    t4 = (B_m*B_n)
    t5 = (t2*t4)
    t6 = (B_k*B_m*e)
    t7 = (B_k*B_n*b_w)
    t8 = (C_in*g)
    t9 = (T*e)
    t10 = (t8*t9)
    t11 = (C_h*b_w)
    t12 = (-(-((C_in*t1*t11))//(32)))
    t13 = (-(-((t11*t8))//(32)))
    t14 = (C_h*g*t9)
    t15 = (-(-(C_in)//(B_n)))
    t16 = (t1*t15)
    t17 = ((-(-(C_h)//(B_k)))*t16)
    return (t3, t3, t5, 0, 0, 0, (((t3*t6) + (-(-((t3*t7))//(16))))), 0, t2, t3, 1, t5, (((8*t4) + (-(-(t7)//(16))) + t6)), (t0*t10), t10, 1, t12, t13, 1, t12, t13, 1, t14, t14, 1, t17, 0, 0, 0, 0, (((t17*t6) + (-(-((t17*t7))//(32))))), 0, t16, t17, 1, 0, (((4*t4) + (-(-(t7)//(32))) + t6)), (t14*t15), t14, 1, t12, t13, 1, t10, t10, 1)
def f13(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    return (B_m, B_n, B_k, B_m, B_n, B_k, 1, 1, B_m, B_n, B_k, 1, 1)
def f14(g, T, C_in, C_h, e, b_w):
    t0 = (C_in*g)
    t1 = (3*C_h*t0)
    t2 = (2*T*t0)
    return (((t1 + t2)), (((e*t2) + (-(-((b_w*t1))//(32))))))
def f15(g, T, C_in, C_h, e, b_w, B_m, B_n):
    t0 = (C_h*g)
    t1 = (T*e)
    t2 = (t0*t1)
    t3 = (C_in*g*t1)
    return (((((-(-(C_h)//(B_n)))*t3) + ((-(-(C_in)//(B_n)))*t2) + (-(-((3*C_in*b_w*(-(-(T)//(B_m)))*t0))//(32))) + t2 + t3)),)
def f16(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    return ((((8*B_m*B_n) + (B_k*B_m*e) + (-(-((B_k*B_n*b_w))//(16))))),)
def f17(g, T, C_in, C_h, e, b_w, B_m, B_n):
    t0 = (C_h*g)
    t1 = (T*e)
    return ((((t0*t1) + (C_in*g*t1) + (-(-((3*C_in*b_w*(-(-(T)//(B_m)))*t0))//(32))))),)
def f18(g, T, C_in, C_h, e, b_w, B_m, B_n, B_k):
    t0 = (2*B_n)
    return ((((B_k*B_m) + (B_k*t0) + (B_m*t0))),)
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), mlp), ((separate_activation, False)))': ('!CompiledQuantities', ('X', 'W_up', 'H', 'W_down', ), ('H', 'Y', ), ('block_m', 'block_n', 'block_k', ), (), 2, ('!Formulas', ("#", f0, 19), (), (), ('block_m', 'block_n', 'block_k', )), None),
    'demands (00000 (forward, (), mlp), ((separate_activation, False)))': ('!Demands', (('!FoldedKernel', 'H = act(X W_up)', (('row', 'hidden', 'term', ), ), (('X', False, False, ), ('W_up', False, False, ), ('H', False, False, ), ), None, False), ('!FoldedKernel', 'Y = H W_down', (('row', 'column', 'hidden', ), ), (('H', False, False, ), ('W_down', False, False, ), ('Y', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 42), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f2, 10), (), (), ('block_m', 'block_n', 'block_k', )), (), ('block_m', 'block_n', 'block_k', )),
    'compulsory (00000 (forward, (), mlp), ((separate_activation, False)))': ('!Formulas', ("#", f3, 2), (), (), ()),
    'parts (00000 (forward, (), mlp), ((separate_activation, False)), B)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_n', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ('!CutAxis', 'block_k', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f5, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f6, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f7, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f8, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f9, 1), (), (), ())),
    'parts (00000 (forward, (), mlp), ((separate_activation, False)), elements)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_n', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ('!CutAxis', 'block_k', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f5, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f10, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f7, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f8, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f9, 1), (), (), ())),
    'quantities (00000 (forward, (gated), mlp), ((separate_activation, False)))': ('!CompiledQuantities', ('X', 'W_gate', 'W_up', 'H', 'W_down', ), ('H', 'Y', ), ('block_m', 'block_n', 'block_k', ), (), 2, ('!Formulas', ("#", f11, 20), (), (), ('block_m', 'block_n', 'block_k', )), None),
    'demands (00000 (forward, (gated), mlp), ((separate_activation, False)))': ('!Demands', (('!FoldedKernel', 'H = act(X W_gate) * (X W_up)', (('row', 'hidden', 'term', ), ('row', 'hidden', 'term', ), ), (('X', False, False, ), ('W_gate', False, False, ), ('W_up', False, False, ), ('H', False, False, ), ), None, False), ('!FoldedKernel', 'Y = H W_down', (('row', 'column', 'hidden', ), ), (('H', False, False, ), ('W_down', False, False, ), ('Y', False, False, ), ), None, False), ), ('!Formulas', ("#", f12, 46), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f13, 13), (), (), ('block_m', 'block_n', 'block_k', )), (), ('block_m', 'block_n', 'block_k', )),
    'compulsory (00000 (forward, (gated), mlp), ((separate_activation, False)))': ('!Formulas', ("#", f14, 2), (), (), ()),
    'parts (00000 (forward, (gated), mlp), ((separate_activation, False)), B)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_n', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ('!CutAxis', 'block_k', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f15, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f16, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f7, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f17, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f9, 1), (), (), ())),
    'parts (00000 (forward, (gated), mlp), ((separate_activation, False)), elements)': ('!Parts', (('!PartFormulas', ('block_m', 'block_n', ), (('!CutAxis', 'block_m', 'rows', None, False), ('!CutAxis', 'block_n', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ('!CutAxis', 'block_k', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ), False, False, False, True, ('block_k', ), ('!Formulas', ("#", f15, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f18, 1), (), (), ('block_m', 'block_n', 'block_k', )), ('!Formulas', ("#", f7, 1), (), (), ('block_m', 'block_n', )), ('!Formulas', ("#", f17, 1), (), (), ('block_m', 'block_n', ))), ), ('!Formulas', ("#", f9, 1), (), (), ())),
}
