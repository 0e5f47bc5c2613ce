"""Compiled formulas of sparse_transformer; written by `python -m tests.support.shipped_formulas`."""
def f0(N_k, N_q):
    t0 = ((N_k + ((-1)*N_q)))
    return (Minimum(((-1)*t0), t0),)
def f1(N_q, l_s):
    return (((N_q + ((-1)*l_s))),)
def f2(N_q, l_s):
    return (N_q,)
def f3(l_s, c_s):
    return (((l_s + ((-1)*c_s))),)
def f4(l_s, c_s):
    return (l_s,)
def f5(N_q, l_s):
    return (((((-1)*N_q) + (l_s*((N_q)//(l_s))))),)
def f6(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, l_s, c_s, B_r, B_c):
    t0 = (B*H)
    t1 = (d*t0)
    t2 = (N_q*t1)
    t3 = (-(-(N_q)//(B_r)))
    t4 = (-(-(((N_q + l_s)))//(B_r)))
    t5 = Minimum(t3, t4)
    t6 = (-(-(N_q)//(B_c)))
    t7 = Minimum(t3, t4, Maximum(0, (-(-(((1 + ((-1)*B_c) + ((-1)*B_r) + (B_c*t6))))//(B_r)))))
    t8 = ((((-1)*t7) + t5))
    t9 = SumOfFloors(t7, B_c, B_r, (((-1) + B_c + B_r)))
    t10 = Minimum(t3, (-(-(((B_c + l_s)))//(B_r))), t4)
    t11 = ((-1)*l_s)
    t12 = SumOfFloors(((((-1)*t10) + t5)), B_c, B_r, (((B_r*t10) + t11)))
    t13 = (((B_c*((((-1)*t12) + t9))) + (N_q*t8)))
    t14 = (t1*t13)
    t15 = (d_v*t0)
    t16 = (t13*t15)
    t17 = (N_q*t15)
    t18 = (((e*t17) + (e*t2)))
    t19 = (B_r*t5)
    t20 = ((((-1)*Minimum(N_q, t19)) + t19))
    t21 = Maximum(0, Minimum((((((B_r*(((-1) + t3))) + t11)))//(B_c)), (((((B_r*(((-1) + t4))) + t11)))//(B_c))))
    t22 = ((((B_r*t13) + ((-1)*((N_q + ((-1)*B_c*t21)))*t20)))*t0)
    t23 = (2*t22)
    t24 = (((d*t23) + (d_v*t23)))
    t25 = (B_c*B_r)
    t26 = (B_c*d)
    t27 = (B_c*d_v)
    t28 = (B_r*d)
    t29 = (B_r*d_v)
    t30 = (B*H_kv*N_k)
    t31 = (d*t30)
    t32 = (d_v*t30)
    return (t2, t14, t16, t17, (((e*t14) + (e*t16) + t18)), 0, t24, t24, ((((((B_r*((((-1)*t12) + (t6*t8) + t9))) + ((-1)*((((-1)*t21) + t6))*t20)))*t0) + t22)), 0, 0, (((2*B_r) + t25 + t26 + t27 + t28 + t29)), (((4*t25) + (4*t29) + (8*B_r) + (e*t26) + (e*t27) + (e*t28))), ((t17 + t2 + t31 + t32)), (((e*t31) + (e*t32) + t18)))
def f7(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, l_s, c_s, B_r, B_c):
    t0 = (-(-(N_q)//(B_r)))
    t1 = (-(-(((N_q + l_s)))//(B_r)))
    t2 = (-(-(N_q)//(B_c)))
    t3 = Minimum(t0, t1, Maximum(0, (-(-(((1 + ((-1)*B_c) + ((-1)*B_r) + (B_c*t2))))//(B_r)))))
    t4 = SumOfFloors(t3, B_c, B_r, (((-1) + B_c + B_r)))
    t5 = Minimum(t0, t1)
    t6 = ((((-1)*t3) + t5))
    t7 = Minimum(t0, (-(-(((B_c + l_s)))//(B_r))), t1)
    t8 = SumOfFloors(((((-1)*t7) + t5)), B_c, B_r, ((((-1)*l_s) + (B_r*t7))))
    t9 = (B*H)
    t10 = (((((-1)*t8) + (t2*t6) + t4))*t9)
    t11 = (B_r*t10)
    t12 = (B_c*t11)
    t13 = (B_c*e)
    t14 = (d*t13)
    t15 = (d_v*t13)
    t16 = (4*B_r)
    t17 = (d*e)
    t18 = (t17*t9)
    t19 = (N_q*t18)
    t20 = (((B_c*((((-1)*t8) + t4))) + (N_q*t6)))
    t21 = (B*H_kv)
    t22 = (N_k*t21)
    t23 = (d_v*e)
    t24 = (t23*t9)
    t25 = (N_q*t24)
    return (t10, t10, ((t11 + t12)), t12, 0, 0, (((t10*t14) + (t10*t15))), 0, (t0*t9), t10, 1, 0, (((8*B_r) + (B_c*t16) + (B_r*t17) + (d_v*t16) + t14 + t15)), t19, t19, t9, (t18*t20), (t17*t22), t21, (t20*t24), (t22*t23), t21, t25, t25, t9)
def f8(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, l_s, c_s, B_r, B_c):
    return (B_r, B_c, d, B_r, d_v, B_c, 1, 1)
def f9(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, l_s, c_s, B_r, B_c):
    t0 = (B*H*e)
    t1 = (N_q*t0)
    t2 = (-(-(N_q)//(B_r)))
    t3 = (-(-(((N_q + l_s)))//(B_r)))
    t4 = Minimum(t2, t3)
    t5 = Minimum(t2, t3, Maximum(0, (-(-(((1 + ((-1)*B_c) + ((-1)*B_r) + (B_c*(-(-(N_q)//(B_c)))))))//(B_r)))))
    t6 = Minimum(t2, (-(-(((B_c + l_s)))//(B_r))), t3)
    t7 = ((((B_c*((((-1)*SumOfFloors(((((-1)*t6) + t4)), B_c, B_r, ((((-1)*l_s) + (B_r*t6))))) + SumOfFloors(t5, B_c, B_r, (((-1) + B_c + B_r)))))) + (N_q*((((-1)*t5) + t4)))))*t0)
    return ((((d*t1) + (d*t7) + (d_v*t1) + (d_v*t7))),)
def f10(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, l_s, c_s, B_r, B_c):
    t0 = (4*B_r)
    t1 = (B_c*e)
    return ((((8*B_r) + (B_c*t0) + (d*t1) + (d_v*t0) + (d_v*t1) + (B_r*d*e))),)
def f11(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, l_s, c_s, B_r, B_c):
    t0 = (B*H*N_q*e)
    return ((((d*t0) + (d_v*t0))),)
def f12(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, l_s, c_s):
    return (0,)
def f13(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, l_s, c_s, B_r, B_c):
    return ((((2*B_r) + (B_c*B_r) + (B_c*d) + (B_c*d_v) + (B_r*d) + (B_r*d_v))),)
RECORDS = {
    'requirements ()': (('!CompiledRequirement', 'kv_len', 'q_len = {q_len}, for a position sees positions of its own sequence', (), ('kv_len', 'q_len', ), ("#", f0, 1), None), ('!CompiledRequirement', 'stride', 'up to q_len = {q_len}', (), ('q_len', 'stride', ), ("#", f1, 1), ("#", f2, 1)), ('!CompiledRequirement', 'summary', 'up to stride = {stride}, the positions of a section', (('fixed', True, ), ('second', True, ), ), ('stride', 'summary', ), ("#", f3, 1), ("#", f4, 1)), ('!CompiledRequirement', 'q_len', 'a multiple of stride = {stride}, for the second fixed factor has whole sections only', (('fixed', True, ), ('second', True, ), ), ('q_len', 'stride', ), ("#", f5, 1), None), ),
    'quantities (01100 (forward, (), attention), ((fixed, False), (packed, False), (second, False)))': ('!CompiledQuantities', ('Q', 'K', 'V', ), ('O', ), ('block_q', 'block_kv', ), ('stride', 'summary', ), 1, ('!Formulas', ("#", f6, 15), (), ('stride', 'summary', ), ('block_q', 'block_kv', )), None),
    'demands (01100 (forward, (), attention), ((fixed, False), (packed, False), (second, False)))': ('!Demands', (('!FoldedKernel', 'the last l positions', (('query', 'key', 'depth', ), ('query', 'value', 'key', ), ), (('Q', False, False, ), ('K', False, False, ), ('V', False, False, ), ('O', False, False, ), ), None, False), ), ('!Formulas', ("#", f7, 25), (), ('stride', 'summary', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f8, 8), (), ('stride', 'summary', ), ('block_q', 'block_kv', )), ('stride', 'summary', ), ('block_q', 'block_kv', )),
    'parts (01100 (forward, (), attention), ((fixed, False), (packed, False), (second, False)), B)': ('!Parts', (('!PartFormulas', ('block_q', 'block_kv', ), (('!CutAxis', 'block_q', 'q_len', None, False), ('!CutAxis', 'block_kv', 'q_len', None, False), ), False, True, False, True, (), ('!Formulas', ("#", f9, 1), (), ('stride', 'summary', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f10, 1), (), ('stride', 'summary', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f11, 1), (), ('stride', 'summary', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f11, 1), (), ('stride', 'summary', ), ('block_q', 'block_kv', ))), ), ('!Formulas', ("#", f12, 1), (), ('stride', 'summary', ), ())),
    'parts (01100 (forward, (), attention), ((fixed, False), (packed, False), (second, False)), elements)': ('!Parts', (('!PartFormulas', ('block_q', 'block_kv', ), (('!CutAxis', 'block_q', 'q_len', None, False), ('!CutAxis', 'block_kv', 'q_len', None, False), ), False, True, False, True, (), ('!Formulas', ("#", f9, 1), (), ('stride', 'summary', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f13, 1), (), ('stride', 'summary', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f11, 1), (), ('stride', 'summary', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f11, 1), (), ('stride', 'summary', ), ('block_q', 'block_kv', ))), ), ('!Formulas', ("#", f12, 1), (), ('stride', 'summary', ), ())),
}
