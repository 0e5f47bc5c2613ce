"""Compiled formulas of linformer; written by `python -m tests.support.shipped_formulas`."""
def f0(N_k, k):
    return (((N_k + ((-1)*k))),)
def f1(N_k, k):
    return (N_k,)
def f2(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_r, B_c, B_p, B_s):
    t0 = (N_k*k)
    t1 = (B*H_kv)
    t2 = (t0*t1)
    t3 = (-(-(k)//(B_p)))
    t4 = (N_k*t1)
    t5 = (d*t4)
    t6 = (t3*t5)
    t7 = (d_v*t4)
    t8 = (t3*t7)
    t9 = (B*H)
    t10 = (N_q*t9)
    t11 = (d*t10)
    t12 = (k*(-(-(N_q)//(B_r)))*t9)
    t13 = (d*t12)
    t14 = (d_v*t12)
    t15 = (k*t1)
    t16 = (d*t15)
    t17 = (d_v*t15)
    t18 = (d_v*t10)
    t19 = (e*t18)
    t20 = (2*t0)
    t21 = (e*t20)
    t22 = (((e*t11) + (e*t16) + (e*t17)))
    t23 = (2*k)
    t24 = (t1*t20)
    t25 = (((d*t24) + (d_v*t24) + (t11*t23) + (t18*t23)))
    t26 = (B_p*d)
    t27 = (B_p*d_v)
    t28 = (B_s*d)
    t29 = (B_s*d_v)
    t30 = (2*B_p*B_s)
    t31 = (B_c*B_r)
    t32 = (B_c*d)
    t33 = (B_c*d_v)
    t34 = (B_r*d)
    t35 = (B_r*d_v)
    t36 = ((t11 + t16 + t17 + t20 + t5 + t7))
    t37 = (((e*t5) + (e*t7) + t21 + t22))
    return (t2, t2, t6, t8, t11, t13, t14, t16, t17, t18, (((e*t13) + (e*t14) + (e*t6) + (e*t8) + (t1*t21) + t19 + t22)), 0, t25, t25, (((k*t10) + ((-(-(k)//(B_c)))*t10))), 0, 0, Maximum(((t26 + t27 + t28 + t29 + t30)), (((2*B_r) + t31 + t32 + t33 + t34 + t35))), Maximum((((4*t26) + (4*t27) + (e*t28) + (e*t29) + (e*t30))), (((4*t31) + (4*t35) + (8*B_r) + (e*t32) + (e*t33) + (e*t34)))), t36, ((t18 + t36)), t37, ((t19 + t37)))
def f3(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_r, B_c, B_p, B_s):
    t0 = (2*N_k*k)
    t1 = (e*t0)
    return (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, t0, t0, t1, t1)
def f4(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_r, B_c, B_p, B_s):
    t0 = (B*H_kv)
    t1 = ((-(-(k)//(B_p)))*t0)
    t2 = ((-(-(N_k)//(B_s)))*t1)
    t3 = (B_s*e)
    t4 = (d*t3)
    t5 = (d_v*t3)
    t6 = (2*B_p*t3)
    t7 = (4*B_p)
    t8 = (N_k*e)
    t9 = (k*t8)
    t10 = (t0*t9)
    t11 = (t1*t8)
    t12 = (t0*t8)
    t13 = (d*e)
    t14 = (k*t0)
    t15 = (t13*t14)
    t16 = (d_v*e)
    t17 = (t14*t16)
    t18 = (B*H)
    t19 = ((-(-(N_q)//(B_r)))*t18)
    t20 = ((-(-(k)//(B_c)))*t19)
    t21 = (B_r*t20)
    t22 = (B_c*e)
    t23 = (d*t22)
    t24 = (d_v*t22)
    t25 = (4*B_r)
    t26 = (N_q*t18)
    t27 = (t13*t26)
    t28 = (k*t19)
    t29 = (t16*t26)
    return (t2, t2, 0, 0, 0, 0, (((t2*t4) + (t2*t5) + (t2*t6))), 0, t1, t2, 1, 0, (((d*t7) + (d_v*t7) + t4 + t5 + t6)), t10, t9, 1, t10, t9, 1, (d*t11), (d*t12), t0, (d_v*t11), (d_v*t12), t0, t15, t15, t0, t17, t17, t0, t20, t20, (((B_c*t21) + t21)), 0, 0, 0, (((t20*t23) + (t20*t24))), 0, t19, t20, 1, 0, (((8*B_r) + (B_c*t25) + (B_r*t13) + (d_v*t25) + t23 + t24)), t27, t27, t18, (t13*t28), t15, t0, (t16*t28), t17, t0, t29, t29, t18)
def f5(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_r, B_c, B_p, B_s):
    return (B_p, d, B_s, B_p, d_v, B_s, 1, 1, B_r, B_c, d, B_r, d_v, B_c, B_r, 1)
def f6(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k):
    return (k,)
def f7(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_p, B_s):
    t0 = (B*H_kv*e)
    t1 = (k*t0)
    t2 = (N_k*(-(-(k)//(B_p)))*t0)
    return ((((d*t1) + (d*t2) + (d_v*t1) + (d_v*t2) + (2*N_k*t1))),)
def f8(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_p, B_s):
    t0 = (4*B_p)
    t1 = (B_s*e)
    return ((((d*t0) + (d*t1) + (d_v*t0) + (d_v*t1) + (2*B_p*t1))),)
def f9(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_p, B_s):
    t0 = (B*H_kv*e*k)
    return ((((d*t0) + (d_v*t0) + (2*N_k*t0))),)
def f10(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_r, B_c):
    t0 = (B*H*e)
    t1 = (N_q*t0)
    t2 = (k*(-(-(N_q)//(B_r)))*t0)
    return ((((d*t1) + (d*t2) + (d_v*t1) + (d_v*t2))),)
def f11(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_r, B_c):
    t0 = (4*B_r)
    t1 = (B_c*e)
    return ((((8*B_r) + (B_c*t0) + (d*t1) + (d_v*t0) + (d_v*t1) + (B_r*d*e))),)
def f12(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_r, B_c):
    t0 = (B*H*N_q*e)
    return ((((d*t0) + (d_v*t0))),)
def f13(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k):
    return (0,)
def f14(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_p, B_s):
    return ((((B_p*d) + (B_p*d_v) + (B_s*d) + (B_s*d_v) + (2*B_p*B_s))),)
def f15(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, k, B_r, B_c):
    return ((((2*B_r) + (B_c*B_r) + (B_c*d) + (B_c*d_v) + (B_r*d) + (B_r*d_v))),)
RECORDS = {
    'requirements ()': (('!CompiledRequirement', 'projected', 'up to kv_len = {kv_len}, the rows that are projected', (), ('kv_len', 'projected', ), ("#", f0, 1), ("#", f1, 1)), ),
    'quantities (00000 (forward, (), attention), ((packed, False), (shared, False)))': ('!CompiledQuantities', ('E', 'F', 'K', 'V', 'Q', 'K_proj', 'V_proj', ), ('K_proj', 'V_proj', 'O', ), ('block_q', 'block_kv', 'block_proj', 'block_sum', ), ('projected', ), 2, ('!Formulas', ("#", f2, 23), (), ('projected', ), ('block_q', 'block_kv', 'block_proj', 'block_sum', )), ("#", f3, 23)),
    'demands (00000 (forward, (), attention), ((packed, False), (shared, False)))': ('!Demands', (('!FoldedKernel', 'K_proj = E K, V_proj = F V', (('projected', 'depth', 'key', ), ('projected', 'value', 'key', ), ), (('E', False, False, ), ('F', False, False, ), ('K', False, False, ), ('V', False, False, ), ('K_proj', False, False, ), ('V_proj', False, False, ), ), None, False), ('!FoldedKernel', 'O = softmax(Q K_proj^T) V_proj', (('query', 'projected', 'depth', ), ('query', 'value', 'projected', ), ), (('Q', False, True, ), ('K_proj', False, False, ), ('V_proj', False, False, ), ('O', False, True, ), ), None, False), ), ('!Formulas', ("#", f4, 56), (), ('projected', ), ('block_q', 'block_kv', 'block_proj', 'block_sum', )), ('!Formulas', ("#", f5, 16), (), ('projected', ), ('block_q', 'block_kv', 'block_proj', 'block_sum', )), ('projected', ), ('block_q', 'block_kv', 'block_proj', 'block_sum', )),
    'parts (00000 (forward, (), attention), ((packed, False), (shared, False)), B)': ('!Parts', (('!PartFormulas', ('block_proj', 'block_sum', ), (('!CutAxis', 'block_proj', '', ('!Formulas', ("#", f6, 1), (), ('projected', ), ()), False), ('!CutAxis', 'block_sum', 'kv_len', None, False), ), False, False, True, True, (), ('!Formulas', ("#", f7, 1), (), ('projected', ), ('block_proj', 'block_sum', )), ('!Formulas', ("#", f8, 1), (), ('projected', ), ('block_proj', 'block_sum', )), ('!Formulas', ("#", f9, 1), (), ('projected', ), ('block_proj', 'block_sum', )), ('!Formulas', ("#", f7, 1), (), ('projected', ), ('block_proj', 'block_sum', ))), ('!PartFormulas', ('block_q', 'block_kv', ), (('!CutAxis', 'block_q', 'q_len', None, False), ('!CutAxis', 'block_kv', '', ('!Formulas', ("#", f6, 1), (), ('projected', ), ()), False), ), False, False, True, True, (), ('!Formulas', ("#", f10, 1), (), ('projected', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f11, 1), (), ('projected', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f12, 1), (), ('projected', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f10, 1), (), ('projected', ), ('block_q', 'block_kv', ))), ), ('!Formulas', ("#", f13, 1), (), ('projected', ), ())),
    'parts (00000 (forward, (), attention), ((packed, False), (shared, False)), elements)': ('!Parts', (('!PartFormulas', ('block_proj', 'block_sum', ), (('!CutAxis', 'block_proj', '', ('!Formulas', ("#", f6, 1), (), ('projected', ), ()), False), ('!CutAxis', 'block_sum', 'kv_len', None, False), ), False, False, True, True, (), ('!Formulas', ("#", f7, 1), (), ('projected', ), ('block_proj', 'block_sum', )), ('!Formulas', ("#", f14, 1), (), ('projected', ), ('block_proj', 'block_sum', )), ('!Formulas', ("#", f9, 1), (), ('projected', ), ('block_proj', 'block_sum', )), ('!Formulas', ("#", f7, 1), (), ('projected', ), ('block_proj', 'block_sum', ))), ('!PartFormulas', ('block_q', 'block_kv', ), (('!CutAxis', 'block_q', 'q_len', None, False), ('!CutAxis', 'block_kv', '', ('!Formulas', ("#", f6, 1), (), ('projected', ), ()), False), ), False, False, True, True, (), ('!Formulas', ("#", f10, 1), (), ('projected', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f15, 1), (), ('projected', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f12, 1), (), ('projected', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f10, 1), (), ('projected', ), ('block_q', 'block_kv', ))), ), ('!Formulas', ("#", f13, 1), (), ('projected', ), ())),
}
