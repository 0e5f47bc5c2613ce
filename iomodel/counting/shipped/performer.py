"""Compiled formulas of performer; written by `python -m tests.support.shipped_formulas`."""
def f0(r, N_k):
    return (((N_k + ((-1)*r))),)
def f1(r, N_k):
    return (N_k,)
def f2(N_k, N_q):
    t0 = ((N_k + ((-1)*N_q)))
    return (Minimum(((-1)*t0), t0),)
def f3(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_r, B_s):
    t0 = (d*r)
    t1 = (B*H_kv)
    t2 = (t0*t1)
    t3 = (-(-(N_q)//(B_r)))
    t4 = (B*H)
    t5 = (t3*t4)
    t6 = (((t0*t5) + t2))
    t7 = (N_k*t1)
    t8 = (d*t7)
    t9 = (d_v*t7)
    t10 = (d_v*r)
    t11 = (r*t4)
    t12 = (N_q*t4)
    t13 = (d*t12)
    t14 = (t1*t10)
    t15 = (r*t1)
    t16 = (d_v*t12)
    t17 = (e*t16)
    t18 = (4*r)
    t19 = (4*t10)
    t20 = (((e*t13) + (e*t8) + (e*t9) + (t1*t18) + (t1*t19)))
    t21 = (2*t12)
    t22 = (((t0*t21) + (t10*t21) + (2*N_k*t2) + (2*t10*t7)))
    t23 = (B_r*d)
    t24 = (B_r*d_v)
    t25 = (B_r*r)
    t26 = ((r + t0 + t10))
    t27 = (B_s*d)
    t28 = (B_s*d_v)
    t29 = (B_s*r)
    t30 = (e*t0)
    t31 = ((t18 + t19 + t30))
    t32 = ((t0 + t13 + t14 + t15 + t8 + t9))
    t33 = ((t20 + t30))
    return (t6, t8, t9, (t10*t5), (t11*t3), t13, t14, t15, t16, (((e*t6) + (t18*t5) + (t19*t5) + t17 + t20)), 0, t22, t22, (((N_k*t15) + (N_q*t11))), 0, 0, Maximum(((t23 + t24 + t25 + t26)), ((t26 + t27 + t28 + t29))), Maximum((((4*t24) + (4*t25) + (e*t23) + t31)), (((4*t29) + (e*t27) + (e*t28) + t31))), t32, ((t16 + t32)), t33, ((t17 + t33)))
def f4(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_r, B_s):
    t0 = (d*r)
    t1 = (e*t0)
    return (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, t0, t0, t1, t1)
def f5(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_r, B_s):
    t0 = (B*H_kv)
    t1 = ((-(-(N_k)//(B_s)))*t0)
    t2 = (d*e)
    t3 = (r*t2)
    t4 = (t0*t3)
    t5 = (B_s*e)
    t6 = (d*t5)
    t7 = (d_v*t5)
    t8 = (4*r)
    t9 = (d_v*t8)
    t10 = ((t3 + t8 + t9))
    t11 = (N_k*t0)
    t12 = (t11*t2)
    t13 = (d_v*e)
    t14 = (t11*t13)
    t15 = (t0*t9)
    t16 = (t0*t8)
    t17 = (B*H)
    t18 = ((-(-(N_q)//(B_r)))*t17)
    t19 = (B_r*r*t18)
    t20 = (N_q*t17)
    t21 = (t2*t20)
    t22 = (t13*t20)
    return (t1, t1, (B_s*r*t1), 0, 0, 0, (((t1*t6) + (t1*t7) + t4)), 0, t0, t1, 1, 0, (((B_s*t8) + t10 + t6 + t7)), t4, t3, 1, t12, t12, t0, t14, t14, t0, t15, t15, t0, t16, t16, t0, t18, t18, t19, 0, 0, 0, 0, 0, t18, t18, 1, t19, (((B_r*t2) + (B_r*t8) + (4*B_r*d_v) + t10)), (t18*t3), t3, 1, (t18*t9), t15, t0, (t18*t8), t16, t0, t21, t21, t17, t22, t22, t17)
def f6(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_r, B_s):
    return (B_s, r, d, r, d_v, B_s, 1, 1, B_r, r, d, B_r, d_v, r, B_r, 1)
def f7(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r):
    return (1,)
def f8(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_1, B_s):
    t0 = (B*H_kv)
    t1 = (r*t0)
    t2 = (4*t1)
    t3 = (d*e)
    t4 = (N_k*t0)
    return ((((d_v*t2) + (t1*t3) + (t3*t4) + (d_v*e*t4) + t2)),)
def f9(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_1, B_s):
    t0 = (4*r)
    t1 = (B_s*e)
    return ((((B_s*t0) + (d*t1) + (d_v*t0) + (d_v*t1) + (d*e*r) + t0)),)
def f10(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_1, B_r):
    t0 = (d*e)
    t1 = (B*H)
    t2 = (N_q*t1)
    t3 = (r*(-(-(N_q)//(B_r)))*t1)
    t4 = (4*t3)
    return ((((d_v*t4) + (t0*t2) + (t0*t3) + (d_v*e*t2) + t4)),)
def f11(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_1, B_r):
    t0 = (4*r)
    t1 = (d*e)
    return ((((B_r*t0) + (B_r*t1) + (d_v*t0) + (r*t1) + (4*B_r*d_v) + t0)),)
def f12(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_1, B_r):
    t0 = (B*H*N_q*e)
    return ((((d*t0) + (d_v*t0))),)
def f13(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r):
    return (0,)
def f14(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_1, B_s):
    return (((r + (B_s*d) + (B_s*d_v) + (B_s*r) + (d*r) + (d_v*r))),)
def f15(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_1, B_r):
    return (((r + (B_r*d) + (B_r*d_v) + (B_r*r) + (d*r) + (d_v*r))),)
def f16(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_r):
    t0 = (d*r)
    t1 = (B*H)
    t2 = (t0*t1)
    t3 = (N_q*t1)
    t4 = (d*t3)
    t5 = (d_v*t3)
    t6 = (e*t0)
    t7 = (e*t4)
    t8 = (e*t5)
    t9 = (d_v*r)
    t10 = (4*t9)
    t11 = (((-1) + (-(-(N_q)//(B_r)))))
    t12 = (B_r)**2
    t13 = (t11*t12)
    t14 = (((N_q + ((-1)*B_r*t11))))**2
    t15 = (2*t1)
    t16 = ((((((d_v*t13) + (d_v*t14)))*t15) + ((((r*t13) + (r*t14)))*t15) + (t10*t3) + (4*N_q*t2)))
    t17 = (2*B_r)
    t18 = (d*t17)
    t19 = (B_r*d_v)
    t20 = (B*H_kv*N_k)
    t21 = (d*t20)
    t22 = (d_v*t20)
    return (t2, t4, t4, t5, t5, (((2*t7) + (2*t8) + (t1*t6))), 0, t16, t16, (2*r*t3), 0, 0, ((r + (d_v*t17) + (r*t17) + t0 + t12 + t18 + t9)), (((4*r) + (4*t12) + (4*t19) + (e*t18) + (e*t19) + (8*B_r*r) + t10 + t6)), ((t0 + t21 + t22 + t4 + t5)), (((e*t21) + (e*t22) + t6 + t7 + t8)))
def f17(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_r):
    t0 = (d*r)
    return (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, t0, (e*t0))
def f18(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_r):
    t0 = (B*H)
    t1 = ((-(-(N_q)//(B_r)))*t0)
    t2 = (B_r*r)
    t3 = (d*e)
    t4 = (r*t3)
    t5 = (t0*t4)
    t6 = (B_r*d_v)
    t7 = (e*t6)
    t8 = (2*B_r*t3)
    t9 = (4*r)
    t10 = (N_q*t0)
    t11 = (t10*t3)
    t12 = (B*H_kv)
    t13 = (N_k*t12)
    t14 = (d_v*e)
    t15 = (t10*t14)
    return (t1, t1, t1, t1, t1, t1, (2*t1*t2), 0, 0, 0, (((t1*t7) + (t1*t8) + t5)), 0, t0, t1, 1, 0, (((4*(B_r)**2) + (4*t6) + (8*t2) + (d_v*t9) + t4 + t7 + t8 + t9)), t5, t4, 1, t11, t11, t0, t11, (t13*t3), t12, t15, (t13*t14), t12, t15, t15, t0)
def f19(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_r):
    return (B_r, r, d, B_r, r, d, B_r, B_r, r, B_r, d_v, B_r, B_r, d_v, r, r, d_v, B_r, 1, 1)
def f20(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r):
    return (Maximum(N_k, N_q), N_k, N_q)
def f21(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_1, B_r):
    t0 = (B*H*e)
    t1 = (d*t0)
    t2 = (2*N_q)
    return ((((r*t1) + (t1*t2) + (d_v*t0*t2))),)
def f22(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_1, B_r):
    t0 = (4*r)
    t1 = (B_r*d_v)
    t2 = (d*e)
    return ((((4*(B_r)**2) + (4*t1) + (d_v*t0) + (e*t1) + (r*t2) + (2*B_r*t2) + (8*B_r*r) + t0)),)
def f23(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r, B_1, B_r):
    t0 = (2*B_r)
    return (((r + (B_r)**2 + (d*r) + (d*t0) + (d_v*r) + (d_v*t0) + (r*t0))),)
RECORDS = {
    'requirements ()': (('!CompiledRequirement', 'features', 'up to kv_len = {kv_len}, for more outgrow the keys', (('mask', 'full', ), ), ('features', 'kv_len', ), ("#", f0, 1), ("#", f1, 1)), ('!CompiledRequirement', 'features', 'up to kv_len = {kv_len}, for more outgrow the keys', (('mask', 'causal', ), ('carry', False, ), ), ('features', 'kv_len', ), ("#", f0, 1), ("#", f1, 1)), ('!CompiledRequirement', 'kv_len', 'q_len = {q_len}, for the scan goes over both', (('mask', 'causal', ), ), ('kv_len', 'q_len', ), ("#", f2, 1), None), ),
    'quantities (00000 (forward, (), attention), ((carry, False), (packed, False)))': ('!CompiledQuantities', ('W', 'K', 'V', 'KV', 'z', 'Q', ), ('KV', 'z', 'O', ), ('block_q', 'block_sum', ), ('features', ), 2, ('!Formulas', ("#", f3, 22), (), ('features', ), ('block_q', 'block_sum', )), ("#", f4, 22)),
    'demands (00000 (forward, (), attention), ((carry, False), (packed, False)))': ('!Demands', (('!FoldedKernel', 'KV = phi(K)^T V', (('key', 'feature', 'depth', ), ('feature', 'value', 'key', ), ), (('W', False, False, ), ('K', False, False, ), ('V', False, False, ), ('KV', False, False, ), ('z', False, False, ), ), None, False), ('!FoldedKernel', 'O = phi(Q) KV', (('query', 'feature', 'depth', ), ('query', 'value', 'feature', ), ), (('W', False, False, ), ('KV', False, False, ), ('z', False, False, ), ('Q', False, True, ), ('O', False, True, ), ), None, False), ), ('!Formulas', ("#", f5, 56), (), ('features', ), ('block_q', 'block_sum', )), ('!Formulas', ("#", f6, 16), (), ('features', ), ('block_q', 'block_sum', )), ('features', ), ('block_q', 'block_sum', )),
    'parts (00000 (forward, (), attention), ((carry, False), (packed, False)), B)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_sum', ), (('!CutAxis', 'block_sum', 'kv_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f7, 1), (), ('features', ), ()), False), ), False, False, True, True, (), ('!Formulas', ("#", f8, 1), (), ('features', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f9, 1), (), ('features', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f8, 1), (), ('features', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f8, 1), (), ('features', ), ('no_tile', 'block_sum', ))), ('!PartFormulas', ('no_tile', 'block_q', ), (('!CutAxis', 'block_q', 'q_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f7, 1), (), ('features', ), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f10, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f11, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f12, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f12, 1), (), ('features', ), ('no_tile', 'block_q', ))), ), ('!Formulas', ("#", f13, 1), (), ('features', ), ())),
    'parts (00000 (forward, (), attention), ((carry, False), (packed, False)), elements)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_sum', ), (('!CutAxis', 'block_sum', 'kv_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f7, 1), (), ('features', ), ()), False), ), False, False, True, True, (), ('!Formulas', ("#", f8, 1), (), ('features', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f14, 1), (), ('features', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f8, 1), (), ('features', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f8, 1), (), ('features', ), ('no_tile', 'block_sum', ))), ('!PartFormulas', ('no_tile', 'block_q', ), (('!CutAxis', 'block_q', 'q_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f7, 1), (), ('features', ), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f10, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f15, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f12, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f12, 1), (), ('features', ), ('no_tile', 'block_q', ))), ), ('!Formulas', ("#", f13, 1), (), ('features', ), ())),
    'quantities (01100 (forward, (), attention), ((carry, False), (packed, False)))': ('!CompiledQuantities', ('W', 'Q', 'K', 'V', ), ('O', ), ('block_q', ), ('features', ), 1, ('!Formulas', ("#", f16, 16), (), ('features', ), ('block_q', )), ("#", f17, 16)),
    'demands (01100 (forward, (), attention), ((carry, False), (packed, False)))': ('!Demands', (('!FoldedKernel', 'causal scan', (('query', 'feature', 'depth', ), ('key', 'feature', 'depth', ), ('query', 'key', 'feature', ), ('query', 'value', 'key', ), ('query', 'value', 'feature', ), ('feature', 'value', 'key', ), ), (('W', False, False, ), ('Q', False, False, ), ('K', False, False, ), ('V', False, False, ), ('O', False, False, ), ), None, False), ), ('!Formulas', ("#", f18, 32), (), ('features', ), ('block_q', )), ('!Formulas', ("#", f19, 20), (), ('features', ), ('block_q', )), ('features', ), ('block_q', )),
    'parts (01100 (forward, (), attention), ((carry, False), (packed, False)), B)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_q', ), (('!CutAxis', 'block_q', '', ('!Formulas', ("#", f20, 3), (), ('features', ), ()), False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f7, 1), (), ('features', ), ()), False), ), False, True, True, True, (), ('!Formulas', ("#", f21, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f22, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f21, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f21, 1), (), ('features', ), ('no_tile', 'block_q', ))), ), ('!Formulas', ("#", f13, 1), (), ('features', ), ())),
    'parts (01100 (forward, (), attention), ((carry, False), (packed, False)), elements)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_q', ), (('!CutAxis', 'block_q', '', ('!Formulas', ("#", f20, 3), (), ('features', ), ()), False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f7, 1), (), ('features', ), ()), False), ), False, True, True, True, (), ('!Formulas', ("#", f21, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f23, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f21, 1), (), ('features', ), ('no_tile', 'block_q', )), ('!Formulas', ("#", f21, 1), (), ('features', ), ('no_tile', 'block_q', ))), ), ('!Formulas', ("#", f13, 1), (), ('features', ), ())),
}
