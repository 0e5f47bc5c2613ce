"""Compiled formulas of mamba2; written by `python -m tests.support.shipped_formulas`."""
def f0(N_k, N_q):
    t0 = ((N_k + ((-1)*N_q)))
    return (Minimum(((-1)*t0), t0),)
def f1(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_r):
    t0 = (-(-(N_q)//(B_r)))
    t1 = (B*H)
    t2 = (t0*t1)
    t3 = (N_q*t1)
    t4 = (2*t3)
    t5 = (d*d_v)
    t6 = (2*t5)
    t7 = (t2*t6)
    t8 = (d*t3)
    t9 = (d_v*t3)
    t10 = (16*t2)
    t11 = (d_v*e)
    t12 = (t11*t3)
    t13 = (4*H)
    t14 = (B*N_q)
    t15 = (B_r)**2
    t16 = (((-1) + t0))
    t17 = (t15*t16)
    t18 = (((N_q + ((-1)*B_r*t16))))**2
    t19 = (2*t1)
    t20 = ((((((d*t17) + (d*t18)))*t19) + ((((d_v*t17) + (d_v*t18)))*t19) + (t13*t14*t5)))
    t21 = (2*B_r)
    t22 = (d*t21)
    t23 = (4*B_r)
    t24 = (N_k*t1)
    t25 = (B*N_k)
    t26 = (H_kv*d)
    t27 = (t25*t26)
    t28 = (t14*t26)
    t29 = ((H + (d_v*t24) + (t2*t5) + t24 + t27 + t28))
    t30 = ((t2 + t29))
    t31 = (B*t0*t13)
    t32 = (((e*t27) + (e*t28) + (t11*t24) + (t13*t25) + (t31*t5) + t13))
    t33 = ((t31 + t32))
    return ((2*t2), t4, (d*t4), (d_v*t4), t7, t2, t8, t7, t2, t9, (((3*t12) + (8*t3) + (t10*t5) + (3*e*t8) + t10)), 0, t20, t20, (((((t17 + t18))*t1) + t2 + t4)), 0, 0, Maximum(((1 + t6)), ((1 + B_r + (d_v*t21) + t15 + t22 + t5))), Maximum(((4 + (8*t5))), ((4 + (4*t15) + (4*t5) + (B_r*t11) + (d_v*t23) + (e*t22) + t23))), t30, t30, ((t29 + t9)), t33, t33, ((t12 + t32)))
def f2(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_r):
    t0 = (4*H)
    return (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, H, H, H, t0, t0, t0)
def f3(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_r):
    t0 = (-(-(N_q)//(B_r)))
    t1 = (B*H)
    t2 = (t0*t1)
    t3 = (B_r*t2)
    t4 = (B_r*e)
    t5 = (d*t4)
    t6 = (4*B_r)
    t7 = (d*d_v)
    t8 = (((4*t7) + (d_v*t4) + t6))
    t9 = (4*H)
    t10 = (B*t9)
    t11 = (t0*t10)
    t12 = (N_q*t10)
    t13 = (N_k*t10)
    t14 = (d*e)
    t15 = (N_q*t1)
    t16 = (t14*t15)
    t17 = (B*H_kv)
    t18 = (t14*t17)
    t19 = (N_k*t18)
    t20 = (d_v*e)
    t21 = (t15*t20)
    t22 = (N_k*t1*t20)
    t23 = (t11*t7)
    t24 = (B_r)**2
    t25 = (t2*t24)
    t26 = ((t25 + t3))
    return (t2, t3, 0, 0, 0, 0, 0, t2, t2, 1, t3, ((8 + t5 + t8)), t11, t9, H, t12, t13, t1, t16, t19, t17, t21, t22, t1, t23, t23, t1, t11, t11, t1, t2, 0, 0, 0, 0, 0, t1, 0, 1, 0, ((4 + (8*t7))), t23, t23, t1, t11, t11, t1, t23, t23, t1, t2, t2, t2, t26, t25, 0, 0, 0, 0, t2, t2, 1, t26, ((4 + (2*t5) + (4*t24) + (d_v*t6) + t8)), t11, t9, H, t12, t13, t1, t16, (N_q*t18), t17, t16, t19, t17, t21, t22, t1, t23, t23, t1, t21, t21, t1)
def f4(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_r):
    return (d, d_v, B_r, 1, 1, 1, 1, B_r, B_r, d, B_r, d_v, B_r, B_r, d_v, d, 1, 1)
def f5(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r):
    return (Maximum(N_k, N_q), N_k, N_q)
def f6(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r):
    return (1,)
def f7(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_r):
    t0 = (B*H)
    t1 = (N_q*t0)
    t2 = (16*(-(-(N_q)//(B_r)))*t0)
    t3 = (3*e*t1)
    return ((((8*t1) + (d*t3) + (d_v*t3) + (d*d_v*t2) + t2)),)
def f8(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_r):
    t0 = (d*d_v)
    t1 = (4*B_r)
    t2 = (B_r*e)
    return (Maximum(((4 + (8*t0))), ((4 + (4*(B_r)**2) + (4*t0) + (d_v*t1) + (d_v*t2) + (2*d*t2) + t1))),)
def f9(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r):
    return (0,)
def f10(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_r):
    t0 = (d*d_v)
    t1 = (2*B_r)
    return (Maximum(((1 + (2*t0))), ((1 + B_r + (B_r)**2 + (d*t1) + (d_v*t1) + t0))),)
RECORDS = {
    'requirements ()': (('!CompiledRequirement', 'kv_len', 'q_len = {q_len}, for the scan goes over both', (), ('kv_len', 'q_len', ), ("#", f0, 1), None), ),
    'quantities (01100 (forward, (), attention), ((carry, False), (packed, False)))': ('!CompiledQuantities', ('A', 'DT', 'B', 'X', 'STATES', 'DECAY', 'C', ), ('STATES', 'DECAY', 'Y', ), ('block_q', ), (), 3, ('!Formulas', ("#", f1, 25), (), (), ('block_q', )), ("#", f2, 25)),
    'demands (01100 (forward, (), attention), ((carry, False), (packed, False)))': ('!Demands', (('!FoldedKernel', 'chunk states', (('depth', 'value', 'key', ), ), (('A', False, False, ), ('DT', False, False, ), ('B', False, False, ), ('X', False, False, ), ('STATES', False, False, ), ('DECAY', False, False, ), ), None, False), ('!FoldedKernel', 'pass states', (), (('STATES', False, False, ), ('DECAY', False, False, ), ('STATES', False, False, ), ), None, False), ('!FoldedKernel', 'outputs', (('query', 'key', 'depth', ), ('query', 'value', 'key', ), ('query', 'value', 'depth', ), ), (('A', False, False, ), ('DT', False, False, ), ('C', False, False, ), ('B', False, False, ), ('X', False, False, ), ('STATES', False, False, ), ('Y', False, False, ), ), None, False), ), ('!Formulas', ("#", f3, 85), (), (), ('block_q', )), ('!Formulas', ("#", f4, 18), (), (), ('block_q', )), (), ('block_q', )),
    'parts (01100 (forward, (), attention), ((carry, False), (packed, False)), B)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_q', ), (('!CutAxis', 'block_q', '', ('!Formulas', ("#", f5, 3), (), (), ()), False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f6, 1), (), (), ()), False), ), False, True, True, True, (), ('!Formulas', ("#", f7, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f8, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f7, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f7, 1), (), (), ('no_tile', 'block_q', ))), ), ('!Formulas', ("#", f9, 1), (), (), ())),
    'parts (01100 (forward, (), attention), ((carry, False), (packed, False)), elements)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_q', ), (('!CutAxis', 'block_q', '', ('!Formulas', ("#", f5, 3), (), (), ()), False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f6, 1), (), (), ()), False), ), False, True, True, True, (), ('!Formulas', ("#", f7, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f10, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f7, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f7, 1), (), (), ('no_tile', 'block_q', ))), ), ('!Formulas', ("#", f9, 1), (), (), ())),
}
