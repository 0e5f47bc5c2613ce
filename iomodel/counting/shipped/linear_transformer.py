"""Compiled formulas of linear_transformer; written by `python -m tests.support.shipped_formulas`."""
def f0(N_k, N_q):
    t0 = ((N_k + ((-1)*N_q)))
    return (Minimum(((-1)*t0), t0),)
def f1(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_r, B_s):
    t0 = (B*H_kv)
    t1 = (d*t0)
    t2 = (N_k*t1)
    t3 = (N_k*t0)
    t4 = (d_v*t3)
    t5 = (d*d_v)
    t6 = (-(-(N_q)//(B_r)))
    t7 = (B*H)
    t8 = (t6*t7)
    t9 = (d*t7)
    t10 = (N_q*t9)
    t11 = (t0*t5)
    t12 = (N_q*t7)
    t13 = (d_v*t12)
    t14 = (4*d)
    t15 = (4*t5)
    t16 = (((e*t10) + (e*t2) + (e*t4) + (t0*t14) + (t0*t15)))
    t17 = (((e*t13) + t16))
    t18 = (2*t5)
    t19 = (((t12*t18) + (t18*t3)))
    t20 = ((t10 + t2))
    t21 = (B_r*d)
    t22 = (B_r*d_v)
    t23 = ((d + t5))
    t24 = (B_s*d)
    t25 = (B_s*d_v)
    t26 = ((t14 + t15))
    t27 = ((t1 + t11 + t20 + t4))
    return (t2, t4, (t5*t8), (t6*t9), t10, t11, t1, t13, (((t14*t8) + (t15*t8) + t17)), 0, t19, t19, t20, 0, 0, Maximum(((t21 + t22 + t23)), ((t23 + t24 + t25))), Maximum((((4*t22) + (e*t21) + t26)), (((e*t24) + (e*t25) + t26))), t27, ((t13 + t27)), t16, t17)
def f2(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_r, B_s):
    t0 = (B*H_kv)
    t1 = ((-(-(N_k)//(B_s)))*t0)
    t2 = (B_s*e)
    t3 = (d*t2)
    t4 = (d_v*t2)
    t5 = (4*d)
    t6 = (d_v*t5)
    t7 = ((t5 + t6))
    t8 = (d*e)
    t9 = (N_k*t0)
    t10 = (t8*t9)
    t11 = (d_v*e)
    t12 = (t11*t9)
    t13 = (t0*t6)
    t14 = (t0*t5)
    t15 = (B*H)
    t16 = ((-(-(N_q)//(B_r)))*t15)
    t17 = (B_r*d*t16)
    t18 = (N_q*t15)
    t19 = (t18*t8)
    t20 = (t11*t18)
    return (t1, (B_s*d*t1), 0, 0, 0, (((t1*t3) + (t1*t4))), 0, t0, t1, 1, 0, ((t3 + t4 + t7)), t10, t10, t0, t12, t12, t0, t13, t13, t0, t14, t14, t0, t16, t17, 0, 0, 0, 0, 0, t16, t16, 1, t17, (((B_r*t8) + (4*B_r*d_v) + t7)), (t16*t6), t13, t0, (t16*t5), t14, t0, t19, t19, t15, t20, t20, t15)
def f3(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_r, B_s):
    return (d, d_v, B_s, 1, 1, B_r, d_v, d, B_r, 1)
def f4(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r):
    return (1,)
def f5(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_s):
    t0 = (B*H_kv)
    t1 = (d*t0)
    t2 = (4*t1)
    t3 = (N_k*e)
    return ((((d_v*t2) + (t1*t3) + (d_v*t0*t3) + t2)),)
def f6(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_s):
    t0 = (4*d)
    t1 = (B_s*e)
    return ((((d*t1) + (d_v*t0) + (d_v*t1) + t0)),)
def f7(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_r):
    t0 = (B*H)
    t1 = (d*t0)
    t2 = (N_q*e)
    t3 = (4*(-(-(N_q)//(B_r)))*t1)
    return ((((d_v*t3) + (t1*t2) + (d_v*t0*t2) + t3)),)
def f8(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_r):
    t0 = (4*d)
    return ((((d_v*t0) + (4*B_r*d_v) + (B_r*d*e) + t0)),)
def f9(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_r):
    t0 = (B*H*N_q*e)
    return ((((d*t0) + (d_v*t0))),)
def f10(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r):
    return (0,)
def f11(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_s):
    return (((d + (B_s*d) + (B_s*d_v) + (d*d_v))),)
def f12(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_r):
    return (((d + (B_r*d) + (B_r*d_v) + (d*d_v))),)
def f13(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_r):
    t0 = (B*H)
    t1 = (N_q*t0)
    t2 = (d*t1)
    t3 = (d_v*t1)
    t4 = (2*t2)
    t5 = (e*t3)
    t6 = (d*d_v)
    t7 = (4*t6)
    t8 = (((-1) + (-(-(N_q)//(B_r)))))
    t9 = (B_r)**2
    t10 = (t8*t9)
    t11 = (((N_q + ((-1)*B_r*t8))))**2
    t12 = (2*t0)
    t13 = ((((((d*t10) + (d*t11)))*t12) + ((((d_v*t10) + (d_v*t11)))*t12) + (t1*t7)))
    t14 = (2*B_r)
    t15 = (d*t14)
    t16 = (B_r*d_v)
    t17 = (B*H_kv*N_k)
    t18 = (d*t17)
    t19 = (d_v*t17)
    return (t2, t2, t3, t3, (((2*t5) + (e*t4))), 0, t13, t13, t4, 0, 0, ((d + (d_v*t14) + t15 + t6 + t9)), (((4*d) + (4*t16) + (4*t9) + (e*t15) + (e*t16) + t7)), ((t18 + t19 + t2 + t3)), (((e*t18) + (e*t19) + (e*t2) + t5)))
def f14(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_r):
    t0 = (B*H)
    t1 = ((-(-(N_q)//(B_r)))*t0)
    t2 = (2*B_r)
    t3 = (B_r*d_v)
    t4 = (e*t3)
    t5 = (d*e)
    t6 = (t2*t5)
    t7 = (4*d)
    t8 = (N_q*t0)
    t9 = (t5*t8)
    t10 = (B*H_kv)
    t11 = (N_k*t10)
    t12 = (d_v*e)
    t13 = (t12*t8)
    return (t1, t1, t1, t1, (d*t1*t2), 0, 0, 0, (((t1*t4) + (t1*t6))), 0, t0, t1, 1, 0, (((4*(B_r)**2) + (4*t3) + (d_v*t7) + t4 + t6 + t7)), t9, t9, t0, t9, (t11*t5), t10, t13, (t11*t12), t10, t13, t13, t0)
def f15(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_r):
    return (B_r, B_r, d, B_r, d_v, B_r, B_r, d_v, d, d, d_v, B_r, 1, 1)
def f16(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r):
    return (Maximum(N_k, N_q), N_k, N_q)
def f17(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_r):
    t0 = (2*B*H*N_q*e)
    return ((((d*t0) + (d_v*t0))),)
def f18(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_r):
    t0 = (4*d)
    t1 = (B_r*d_v)
    return ((((4*(B_r)**2) + (4*t1) + (d_v*t0) + (e*t1) + (2*B_r*d*e) + t0)),)
def f19(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, B_1, B_r):
    t0 = (2*B_r)
    return (((d + (B_r)**2 + (d*d_v) + (d*t0) + (d_v*t0))),)
RECORDS = {
    'requirements ()': (('!CompiledRequirement', 'kv_len', 'q_len = {q_len}, for the scan goes over both', (('mask', 'causal', ), ), ('kv_len', 'q_len', ), ("#", f0, 1), None), ),
    'quantities (00000 (forward, (), attention), ((carry, False), (packed, False)))': ('!CompiledQuantities', ('K', 'V', 'KV', 'z', 'Q', ), ('KV', 'z', 'O', ), ('block_q', 'block_sum', ), (), 2, ('!Formulas', ("#", f1, 21), (), (), ('block_q', 'block_sum', )), None),
    'demands (00000 (forward, (), attention), ((carry, False), (packed, False)))': ('!Demands', (('!FoldedKernel', 'KV = phi(K)^T V', (('depth', 'value', 'key', ), ), (('K', False, False, ), ('V', False, False, ), ('KV', False, False, ), ('z', False, False, ), ), None, False), ('!FoldedKernel', 'O = phi(Q) KV', (('query', 'value', 'depth', ), ), (('KV', False, False, ), ('z', False, False, ), ('Q', False, True, ), ('O', False, True, ), ), None, False), ), ('!Formulas', ("#", f2, 48), (), (), ('block_q', 'block_sum', )), ('!Formulas', ("#", f3, 10), (), (), ('block_q', 'block_sum', )), (), ('block_q', 'block_sum', )),
    'parts (00000 (forward, (), attention), ((carry, False), (packed, False)), B)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_sum', ), (('!CutAxis', 'block_sum', 'kv_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ), False, False, True, True, (), ('!Formulas', ("#", f5, 1), (), (), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f6, 1), (), (), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f5, 1), (), (), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f5, 1), (), (), ('no_tile', 'block_sum', ))), ('!PartFormulas', ('no_tile', 'block_q', ), (('!CutAxis', 'block_q', 'q_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f7, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f8, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f9, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f9, 1), (), (), ('no_tile', 'block_q', ))), ), ('!Formulas', ("#", f10, 1), (), (), ())),
    'parts (00000 (forward, (), attention), ((carry, False), (packed, False)), elements)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_sum', ), (('!CutAxis', 'block_sum', 'kv_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ), False, False, True, True, (), ('!Formulas', ("#", f5, 1), (), (), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f11, 1), (), (), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f5, 1), (), (), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f5, 1), (), (), ('no_tile', 'block_sum', ))), ('!PartFormulas', ('no_tile', 'block_q', ), (('!CutAxis', 'block_q', 'q_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f7, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f12, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f9, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f9, 1), (), (), ('no_tile', 'block_q', ))), ), ('!Formulas', ("#", f10, 1), (), (), ())),
    'quantities (01100 (forward, (), attention), ((carry, False), (packed, False)))': ('!CompiledQuantities', ('Q', 'K', 'V', ), ('O', ), ('block_q', ), (), 1, ('!Formulas', ("#", f13, 15), (), (), ('block_q', )), None),
    'demands (01100 (forward, (), attention), ((carry, False), (packed, False)))': ('!Demands', (('!FoldedKernel', 'causal scan', (('query', 'key', 'depth', ), ('query', 'value', 'key', ), ('query', 'value', 'depth', ), ('depth', 'value', 'key', ), ), (('Q', False, False, ), ('K', False, False, ), ('V', False, False, ), ('O', False, False, ), ), None, False), ), ('!Formulas', ("#", f14, 27), (), (), ('block_q', )), ('!Formulas', ("#", f15, 14), (), (), ('block_q', )), (), ('block_q', )),
    'parts (01100 (forward, (), attention), ((carry, False), (packed, False)), B)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_q', ), (('!CutAxis', 'block_q', '', ('!Formulas', ("#", f16, 3), (), (), ()), False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ), False, True, True, True, (), ('!Formulas', ("#", f17, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f18, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f17, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f17, 1), (), (), ('no_tile', 'block_q', ))), ), ('!Formulas', ("#", f10, 1), (), (), ())),
    'parts (01100 (forward, (), attention), ((carry, False), (packed, False)), elements)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_q', ), (('!CutAxis', 'block_q', '', ('!Formulas', ("#", f16, 3), (), (), ()), False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f4, 1), (), (), ()), False), ), False, True, True, True, (), ('!Formulas', ("#", f17, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f19, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f17, 1), (), (), ('no_tile', 'block_q', )), ('!Formulas', ("#", f17, 1), (), (), ('no_tile', 'block_q', ))), ), ('!Formulas', ("#", f10, 1), (), (), ())),
}
