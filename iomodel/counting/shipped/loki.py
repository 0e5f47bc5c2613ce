"""Compiled formulas of loki; written by `python -m tests.support.shipped_formulas`."""
def f0(d, r_low):
    return (((d + ((-1)*r_low))),)
def f1(d, r_low):
    return (d,)
def f2(N_k, k_top):
    return (((N_k + ((-1)*k_top))),)
def f3(N_k, k_top):
    return (N_k,)
def f4(N_k, N_q):
    return (((N_k + ((-1)*N_q))),)
def f5(N_k, N_q):
    return (N_k,)
def f6(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_r, B_c, B_p, B_s):
    t0 = (d)**2
    t1 = (B*H)
    t2 = ((-(-(N_q)//(B_r)))*t1)
    t3 = (H_kv*t0)
    t4 = (B*t3)
    t5 = ((((-(-(N_q)//(B_p)))*t4) + (t0*t2)))
    t6 = (N_q*d)
    t7 = (B*H_kv)
    t8 = (t6*t7)
    t9 = (t1*t6)
    t10 = (N_k*r_low*t2)
    t11 = (N_q*t1)
    t12 = (N_k*t11)
    t13 = (k_top*t11)
    t14 = (d_v*t13)
    t15 = (d_v*t11)
    t16 = (e*t15)
    t17 = (e*t12)
    t18 = (d*e)
    t19 = (t11*t18)
    t20 = (2*N_q)
    t21 = (t18*t7)
    t22 = (2*d)
    t23 = (2*t11)
    t24 = (((2*t14) + (t0*t23) + (t13*t22) + (t20*t4) + (2*r_low*t12)))
    t25 = (B_s*d)
    t26 = (B_s*d_v)
    t27 = (B_c*B_r)
    t28 = (B_c*r_low)
    t29 = (4*d)
    t30 = (e*t0)
    t31 = (4*k_top)
    t32 = (N_k*t7)
    t33 = (d_v*t32)
    t34 = (((d*t32) + t3 + t33 + t8))
    t35 = (((t11*t22) + t34))
    t36 = ((t12 + t35))
    t37 = (((H_kv*t30) + (N_q*t21) + (e*t33) + (t18*t32)))
    t38 = (((t18*t23) + t37))
    t39 = ((t17 + t38))
    t40 = (t11*t31)
    return (t5, t8, t9, (((k_top*t9) + t10)), t12, t13, t9, t14, t8, t9, t12, t13, t15, (((2*t17) + (3*t19) + (8*t13) + (e*t10) + (e*t14) + (e*t5) + (t13*t18) + (t20*t21) + t16)), 0, t24, t24, ((((-(-(k_top)//(B_s)))*t11) + t13)), 0, 0, Maximum((((B_p*t22) + t0)), ((2 + B_s + d + d_v + k_top + t25 + t26)), (((B_r*t22) + t0 + t27 + t28))), Maximum((((B_p*t18) + (B_p*t29) + t30)), (((4*t27) + (B_r*t18) + (B_r*t29) + (e*t28) + t30)), ((8 + (4*B_s) + (4*d_v) + (e*t25) + (e*t26) + t18 + t31))), ((t34 + t9)), t36, ((t13 + t36)), ((t13 + t15 + t35)), ((t19 + t37)), t39, ((t39 + t40)), ((t16 + t38 + t40)))
def f7(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_r, B_c, B_p, B_s):
    t0 = (H_kv*(d)**2)
    t1 = (e*t0)
    return (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, t0, t0, t0, t0, t1, t1, t1, t1)
def f8(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_r, B_c, B_p, B_s):
    t0 = (B*H_kv)
    t1 = ((-(-(N_q)//(B_p)))*t0)
    t2 = (4*d)
    t3 = (d*e)
    t4 = (e*(d)**2)
    t5 = (H_kv*t4)
    t6 = (t0*t3)
    t7 = (N_q*t6)
    t8 = (B*H)
    t9 = ((-(-(N_q)//(B_r)))*t8)
    t10 = ((-(-(N_k)//(B_c)))*t9)
    t11 = (e*r_low)
    t12 = (B_c*t11)
    t13 = (N_q*t8)
    t14 = (t13*t3)
    t15 = (N_k*t11)
    t16 = (N_k*e*t13)
    t17 = (4*k_top)
    t18 = (t13*t17)
    t19 = ((-(-(k_top)//(B_s)))*t13)
    t20 = (B_s*t3)
    t21 = (d_v*e)
    t22 = (B_s*t21)
    t23 = (k_top*t21)
    t24 = (t13*t21)
    return (t1, 0, 0, 0, 0, 0, 0, t1, t1, 1, 0, (((B_p*t2) + (B_p*t3) + t4)), (t1*t4), t5, H_kv, t7, t7, t0, t7, t7, t0, t9, t10, 0, 0, 0, 0, (t10*t12), 0, t9, ((t10 + t9)), 1, 0, (((B_r*t2) + (B_r*t3) + (4*B_c*B_r) + t12 + t4)), (t4*t9), t5, H_kv, t14, t14, t8, (t15*t9), (t0*t15), t0, t14, t14, t8, t16, t16, t8, 0, 0, 0, 0, 0, 0, t13, 0, 1, 0, ((e + t17)), t16, t16, t8, t18, t18, t8, t19, t19, (((B_s*t19) + t19)), 0, 0, 0, (((t19*t20) + (t19*t22))), 0, t13, t19, 1, 0, ((8 + (4*B_s) + (4*d_v) + t17 + t20 + t22 + t3)), t18, t18, t8, t14, t14, t8, (k_top*t14), (k_top*t6), t0, (t13*t23), (t0*t23), t0, t24, t24, t8)
def f9(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_r, B_c, B_p, B_s):
    return (B_p, d, d, B_p, 1, B_r, d, d, B_r, B_c, r_low, B_r, 1, 1, 1, 1, B_s, d, 1, d_v, B_s, 1, 1)
def f10(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top):
    return (1,)
def f11(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_1, B_p):
    t0 = (B*H_kv*e)
    return (((((d)**2*(-(-(N_q)//(B_p)))*t0) + (2*N_q*d*t0))),)
def f12(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_1, B_p):
    t0 = (B_p*d)
    return ((((4*t0) + (e*(d)**2) + (e*t0))),)
def f13(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_1, B_p):
    return ((2*B*H_kv*N_q*d*e),)
def f14(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_r, B_c):
    t0 = (B*H*e)
    t1 = (N_q*t0)
    t2 = ((-(-(N_q)//(B_r)))*t0)
    return ((((N_k*t1) + ((d)**2*t2) + (2*d*t1) + (N_k*r_low*t2))),)
def f15(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_r, B_c):
    t0 = (4*B_r)
    return ((((B_c*t0) + (d*t0) + (e*(d)**2) + (B_c*e*r_low) + (B_r*d*e))),)
def f16(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_r, B_c):
    t0 = (B*H*N_q*e)
    return ((((N_k*t0) + (2*d*t0))),)
def f17(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top):
    return (k_top,)
def f18(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_1, B_s):
    t0 = (B*H*N_q)
    t1 = (k_top*t0)
    t2 = (e*t0)
    t3 = (e*t1)
    return ((((4*t1) + (d*t2) + (d*t3) + (d_v*t2) + (d_v*t3))),)
def f19(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_1, B_s):
    t0 = (d*e)
    return (((8 + (4*B_s) + (4*d_v) + (4*k_top) + (B_s*t0) + (B_s*d_v*e) + t0)),)
def f20(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_1, B_s):
    t0 = (B*H*N_q)
    t1 = (e*t0)
    return ((((d*t1) + (d_v*t1) + (4*k_top*t0))),)
def f21(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top):
    return (((e + (4*k_top))),)
def f22(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_1, B_p):
    return ((((d)**2 + (2*B_p*d))),)
def f23(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_r, B_c):
    return ((((d)**2 + (B_c*B_r) + (B_c*r_low) + (2*B_r*d))),)
def f24(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top, B_1, B_s):
    return (((2 + B_s + d + d_v + k_top + (B_s*d) + (B_s*d_v))),)
def f25(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, r_low, k_top):
    return (((1 + k_top)),)
RECORDS = {
    'requirements ()': (('!CompiledRequirement', 'rank', 'up to head_dim = {head_dim}, all components of a key', (), ('head_dim', 'rank', ), ("#", f0, 1), ("#", f1, 1)), ('!CompiledRequirement', 'top_k', 'up to kv_len = {kv_len}, all keys', (), ('kv_len', 'top_k', ), ("#", f2, 1), ("#", f3, 1)), ('!CompiledRequirement', 'q_len', 'up to kv_len = {kv_len}, for each query brings a key', (), ('kv_len', 'q_len', ), ("#", f4, 1), ("#", f5, 1)), ),
    'quantities (00000 (forward, (), attention), ((packed, False)))': ('!CompiledQuantities', ('R', 'K_new', 'Q', 'K', 'S', 'I', 'Q_rot', 'V', ), ('K', 'Q_rot', 'S', 'I', 'O', ), ('block_q', 'block_kv', 'block_proj', 'block_sum', ), ('rank', 'top_k', ), 4, ('!Formulas', ("#", f6, 30), (), ('rank', 'top_k', ), ('block_q', 'block_kv', 'block_proj', 'block_sum', )), ("#", f7, 30)),
    'demands (00000 (forward, (), attention), ((packed, False)))': ('!Demands', (('!FoldedKernel', 'K = K_new R', (('query', 'component', 'depth', ), ), (('R', False, False, ), ('K_new', False, True, ), ('K', False, True, ), ), None, False), ('!FoldedKernel', 'approximate scores', (('query', 'component', 'depth', ), ('query', 'key', 'leading', ), ), (('R', False, False, ), ('Q', False, True, ), ('K', False, False, ), ('Q_rot', False, True, ), ('S', False, True, ), ), None, False), ('!FoldedKernel', 'top k', (), (('S', False, False, ), ('I', False, False, ), ), None, False), ('!FoldedKernel', 'attention to the selected keys', (('query', 'selected', 'component', ), ('query', 'value', 'selected', ), ), (('I', False, True, ), ('Q_rot', False, True, ), ('K', False, False, ), ('V', False, False, ), ('O', False, True, ), ), None, False), ), ('!Formulas', ("#", f8, 94), (), ('rank', 'top_k', ), ('block_q', 'block_kv', 'block_proj', 'block_sum', )), ('!Formulas', ("#", f9, 23), (), ('rank', 'top_k', ), ('block_q', 'block_kv', 'block_proj', 'block_sum', )), ('rank', 'top_k', ), ('block_q', 'block_kv', 'block_proj', 'block_sum', )),
    'parts (00000 (forward, (), attention), ((packed, False)), B)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_proj', ), (('!CutAxis', 'block_proj', 'q_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f10, 1), (), ('rank', 'top_k', ), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f11, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f12, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f13, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f13, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_proj', ))), ('!PartFormulas', ('block_q', 'block_kv', ), (('!CutAxis', 'block_q', 'q_len', None, False), ('!CutAxis', 'block_kv', 'kv_len', None, False), ), False, False, True, True, (), ('!Formulas', ("#", f14, 1), (), ('rank', 'top_k', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f15, 1), (), ('rank', 'top_k', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f16, 1), (), ('rank', 'top_k', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f14, 1), (), ('rank', 'top_k', ), ('block_q', 'block_kv', ))), ('!PartFormulas', ('no_tile', 'block_sum', ), (('!CutAxis', 'block_sum', '', ('!Formulas', ("#", f17, 1), (), ('rank', 'top_k', ), ()), False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f10, 1), (), ('rank', 'top_k', ), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f18, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f19, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f20, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f20, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_sum', ))), ), ('!Formulas', ("#", f21, 1), (), ('rank', 'top_k', ), ())),
    'parts (00000 (forward, (), attention), ((packed, False)), elements)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_proj', ), (('!CutAxis', 'block_proj', 'q_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f10, 1), (), ('rank', 'top_k', ), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f11, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f22, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f13, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f13, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_proj', ))), ('!PartFormulas', ('block_q', 'block_kv', ), (('!CutAxis', 'block_q', 'q_len', None, False), ('!CutAxis', 'block_kv', 'kv_len', None, False), ), False, False, True, True, (), ('!Formulas', ("#", f14, 1), (), ('rank', 'top_k', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f23, 1), (), ('rank', 'top_k', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f16, 1), (), ('rank', 'top_k', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f14, 1), (), ('rank', 'top_k', ), ('block_q', 'block_kv', ))), ('!PartFormulas', ('no_tile', 'block_sum', ), (('!CutAxis', 'block_sum', '', ('!Formulas', ("#", f17, 1), (), ('rank', 'top_k', ), ()), False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f10, 1), (), ('rank', 'top_k', ), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f18, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f24, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f20, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_sum', )), ('!Formulas', ("#", f20, 1), (), ('rank', 'top_k', ), ('no_tile', 'block_sum', ))), ), ('!Formulas', ("#", f25, 1), (), ('rank', 'top_k', ), ())),
}
