"""Compiled formulas of reformer; written by `python -m tests.support.shipped_formulas`."""
def f0(N_k, N_q):
    t0 = ((N_k + ((-1)*N_q)))
    return (Minimum(((-1)*t0), t0),)
def f1(H, H_kv):
    t0 = ((H + ((-1)*H_kv)))
    return (Minimum(((-1)*t0), t0),)
def f2(n_b):
    return (((((-1)*n_b) + (2*((n_b)//(2))))),)
def f3(n_b, N_q):
    return (((N_q + ((-1)*n_b))),)
def f4(n_b, N_q):
    return (N_q,)
def f5(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_r, B_c, B_p):
    t0 = (2*N_q)
    t1 = (-(-(t0)//(n_b)))
    t2 = (-(-(t1)//(B_r)))
    t3 = (n_h*t1)
    t4 = (t2*t3)
    t5 = (-(-(N_q)//(t1)))
    t6 = (((-2) + t5))
    t7 = (2*t1)
    t8 = (n_h*t2*t6*t7)
    t9 = ((N_q + ((-1)*(((-1) + t5))*t1)))
    t10 = ((t1 + t9))
    t11 = (n_h*t10)
    t12 = ((-(-(t9)//(B_r)))*t11)
    t13 = (B*H)
    t14 = ((((d*t12) + (d*t4) + (d*t8)))*t13)
    t15 = (N_q*t13)
    t16 = (d*t15)
    t17 = (((n_h*t16) + t16))
    t18 = (d*n_b)
    t19 = (n_h*t13)
    t20 = ((-(-(N_q)//(B_p)))*t19)
    t21 = (t0*t19)
    t22 = (((t12 + t4 + t8))*t13)
    t23 = (n_h*t15)
    t24 = ((((d_v*t12) + (d_v*t4) + (d_v*t8)))*t13)
    t25 = (d_v*t23)
    t26 = (d_v*t15)
    t27 = (e*t26)
    t28 = (8*d_v)
    t29 = (e*t18)
    t30 = (n_h*(t1)**2)
    t31 = (d*t30)
    t32 = (2*t6)
    t33 = (t11*t9)
    t34 = (2*t13)
    t35 = (2*d_v)
    t36 = ((((((d*t33) + (t31*t32) + t31))*t34) + ((((d_v*t30) + (d_v*t33) + (t30*t35*t6)))*t34) + (t18*t23)))
    t37 = (B_p*d)
    t38 = (B_p*n_b)
    t39 = (4*B_r)
    t40 = (B_c*d)
    t41 = (B_c*d_v)
    t42 = (B_r*d)
    t43 = (4*n_h)
    t44 = (B*H_kv*N_k*d_v)
    t45 = (H*n_h)
    t46 = ((t16 + t44 + Ratio((t18*t45), 2)))
    t47 = ((t23 + t46))
    t48 = (((e*t16) + (e*t44) + Ratio((t29*t45), 2)))
    t49 = (((t15*t43) + t48))
    t50 = (t26*t43)
    return (((t14 + t17)), Ratio((t18*t20), 2), ((t21 + t22)), ((t22 + t23)), t24, t23, t25, t23, t23, t25, t23, t26, (((8*t22) + (28*t23) + (e*t14) + (e*t17) + (e*t24) + (t23*t28) + t27 + Ratio((t20*t29), 2))), 0, t36, t36, (((((((-(-(t1)//(B_c)))*t3) + (n_h*(-(-(t10)//(B_c)))*t9) + ((-(-(t7)//(B_c)))*t3*t6)))*t13) + ((((t30*t32) + t30 + t33))*t13) + t23)), 0, 0, Maximum(((n_h + t35)), ((t37 + Ratio(t18, 2) + Ratio(t38, 2))), (((2*B_c) + (B_c*B_r) + (B_r*d_v) + t39 + t40 + t41 + t42))), Maximum(((t28 + t43)), (((2*t38) + (e*t37) + Ratio(t29, 2))), (((8*B_c) + (16*B_r) + (B_c*t39) + (d_v*t39) + (e*t40) + (e*t41) + (e*t42)))), t47, ((t21 + t46)), (((3*t23) + t25 + t46)), ((t25 + t26 + t47)), t49, (((8*t23) + t48)), (((12*t23) + t48 + t50)), ((t27 + t49 + t50)))
def f6(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_r, B_c, B_p):
    t0 = (H*d*n_b*n_h)
    t1 = Ratio(t0, 2)
    t2 = Ratio((e*t0), 2)
    return (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, t1, t1, t1, t1, t2, t2, t2, t2)
def f7(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_r, B_c, B_p):
    t0 = (B*H)
    t1 = ((-(-(N_q)//(B_p)))*t0)
    t2 = (n_h*t1)
    t3 = (d*e)
    t4 = (n_b*t3)
    t5 = Ratio((t2*t4), 2)
    t6 = (N_q*t0)
    t7 = (t3*t6)
    t8 = (4*n_h)
    t9 = (t6*t8)
    t10 = (n_h*t6)
    t11 = (-(-((2*N_q))//(n_b)))
    t12 = (n_h*(-(-(t11)//(B_r))))
    t13 = (2*t11)
    t14 = (-(-(N_q)//(t11)))
    t15 = ((((-2) + t14))*t12)
    t16 = ((N_q + ((-1)*(((-1) + t14))*t11)))
    t17 = ((t11 + t16))
    t18 = (n_h*(-(-(t16)//(B_r))))
    t19 = (((((-(-(t11)//(B_c)))*t12) + ((-(-(t13)//(B_c)))*t15) + ((-(-(t17)//(B_c)))*t18)))*t0)
    t20 = (B_r*t19)
    t21 = (B_c*t20)
    t22 = (8*B_c)
    t23 = (B_c*t3)
    t24 = (d_v*e)
    t25 = (B_c*t24)
    t26 = (4*B_r)
    t27 = (t11*t12)
    t28 = (t13*t15)
    t29 = (t17*t18)
    t30 = (4*((t27 + t28 + t29))*t0)
    t31 = (N_k*t0)
    t32 = (t31*t8)
    t33 = (e*t0)
    t34 = (B*H_kv)
    t35 = (d_v*t9)
    t36 = (t24*t6)
    return (t2, 0, 0, 0, 0, t5, 0, t1, t2, 1, 0, (((B_p*t3) + (2*B_p*n_b) + Ratio(t4, 2))), t7, t7, t0, t5, Ratio((H*n_h*t4), 2), H, t9, t9, t0, 0, 0, 0, 0, 0, 0, t10, 0, 1, 0, 4, t9, t9, t0, t9, t9, t0, t19, t19, ((t20 + t21)), t21, 0, 0, (((t19*t22) + (t19*t23) + (t19*t25))), 0, (((t12 + t15 + t18))*t0), t19, 1, 0, (((16*B_r) + (B_c*t26) + (B_r*t3) + (d_v*t26) + t22 + t23 + t25)), t9, t9, t0, t9, t9, t0, (t10*t3), t7, t0, t30, t32, t0, t30, t32, t0, ((((d*t27) + (d*t28) + (d*t29)))*t33), (t3*t31), t0, ((((d_v*t27) + (d_v*t28) + (d_v*t29)))*t33), (N_k*t24*t34), t34, t35, t35, t0, t9, t9, t0, t10, 0, 0, 0, 0, 0, t6, 0, 1, 0, (((8*d_v) + t8)), t9, t9, t0, t35, t35, t0, t36, t36, t0)
def f8(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_r, B_c, B_p):
    return (B_p, Ratio(n_b, 2), d, B_p, 1, 1, 1, B_r, B_c, d, B_r, d_v, B_c, 1, 1, 1, 1)
def f9(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h):
    return (1,)
def f10(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_1, B_p):
    t0 = (B*H*N_q)
    t1 = (d*e)
    return ((((t0*t1) + (4*n_h*t0) + Ratio((B*H*n_b*n_h*(-(-(N_q)//(B_p)))*t1), 2))),)
def f11(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_1, B_p):
    t0 = (d*e)
    return ((((B_p*t0) + (2*B_p*n_b) + Ratio((n_b*t0), 2))),)
def f12(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_1, B_p):
    t0 = (B*H*N_q)
    return ((((4*n_h*t0) + (d*e*t0))),)
def f13(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h):
    return ((-(-((2*N_q))//(n_b))),)
def f14(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h):
    return ((2*(-(-((2*N_q))//(n_b)))),)
def f15(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_r, B_c):
    t0 = (B*H)
    t1 = (N_q*n_h)
    t2 = (t0*t1)
    t3 = (e*t0)
    t4 = (-(-((2*N_q))//(n_b)))
    t5 = (n_h*(-(-(t4)//(B_r)))*t4)
    t6 = (-(-(N_q)//(t4)))
    t7 = (((-4) + (2*t6)))
    t8 = ((N_q + ((-1)*(((-1) + t6))*t4)))
    t9 = (n_h*((t4 + t8))*(-(-(t8)//(B_r))))
    t10 = (d*t5)
    t11 = (d_v*t5)
    return ((((12*t2) + ((((d*t9) + (t10*t7) + t10))*t3) + ((((d_v*t9) + (t11*t7) + t11))*t3) + (4*d_v*t2) + (8*(((t5*t7) + t5 + t9))*t0) + (d*t1*t3))),)
def f16(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_r, B_c):
    t0 = (4*B_r)
    t1 = (B_c*e)
    return ((((8*B_c) + (16*B_r) + (B_c*t0) + (d*t1) + (d_v*t0) + (d_v*t1) + (B_r*d*e))),)
def f17(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_r, B_c):
    t0 = (B*H*N_q*n_h)
    return ((((12*t0) + (4*d_v*t0))),)
def f18(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h):
    return ((((4*n_h) + (8*d_v))),)
def f19(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_1, B_p):
    return ((((B_p*d) + Ratio((B_p*n_b), 2) + Ratio((d*n_b), 2))),)
def f20(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h, B_r, B_c):
    return ((((2*B_c) + (4*B_r) + (B_c*B_r) + (B_c*d) + (B_c*d_v) + (B_r*d) + (B_r*d_v))),)
def f21(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_b, n_h):
    return (((n_h + (2*d_v))),)
RECORDS = {
    'requirements ()': (('!CompiledRequirement', 'kv_len', 'q_len = {q_len}, for queries serve as keys', (), ('kv_len', 'q_len', ), ("#", f0, 1), None), ('!CompiledRequirement', 'kv_heads', 'heads = {heads}, for the queries of each head are its keys', (), ('heads', 'kv_heads', ), ("#", f1, 1), None), ('!CompiledRequirement', 'buckets', 'an even number, for a direction and its negative are two', (), ('buckets', ), ("#", f2, 1), None), ('!CompiledRequirement', 'buckets', 'an even number up to q_len = {q_len}', (), ('buckets', 'q_len', ), ("#", f3, 1), ("#", f4, 1)), ),
    'quantities (00000 (forward, (), attention), ((packed, False)))': ('!CompiledQuantities', ('Q', 'R', 'BUCKET', 'ORDER', 'V', 'LSE_acc', 'O_acc', ), ('BUCKET', 'ORDER', 'O_acc', 'LSE_acc', 'O', ), ('block_q', 'block_kv', 'block_proj', ), ('buckets', 'rounds', ), 4, ('!Formulas', ("#", f5, 29), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', 'block_proj', )), ("#", f6, 29)),
    'demands (00000 (forward, (), attention), ((packed, False)))': ('!Demands', (('!FoldedKernel', 'hash', (('query', 'half', 'depth', ), ), (('Q', False, True, ), ('R', False, False, ), ('BUCKET', False, True, ), ), None, False), ('!FoldedKernel', 'sort by bucket', (), (('BUCKET', False, False, ), ('ORDER', False, False, ), ), None, False), ('!FoldedKernel', 'each chunk to itself and the one before', (('query', 'key', 'depth', ), ('query', 'value', 'key', ), ), (('ORDER', False, False, ), ('BUCKET', False, False, ), ('Q', False, False, ), ('ORDER', False, False, ), ('BUCKET', False, False, ), ('Q', False, False, ), ('V', False, False, ), ('O_acc', False, False, ), ('LSE_acc', False, False, ), ), None, False), ('!FoldedKernel', 'combine the rounds', (), (('LSE_acc', False, False, ), ('O_acc', False, False, ), ('O', False, False, ), ), None, False), ), ('!Formulas', ("#", f7, 98), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', 'block_proj', )), ('!Formulas', ("#", f8, 17), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', 'block_proj', )), ('buckets', 'rounds', ), ('block_q', 'block_kv', 'block_proj', )),
    'parts (00000 (forward, (), attention), ((packed, False)), B)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_proj', ), (('!CutAxis', 'block_proj', 'q_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f9, 1), (), ('buckets', 'rounds', ), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f10, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f11, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f12, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f12, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', ))), ('!PartFormulas', ('block_q', 'block_kv', ), (('!CutAxis', 'block_q', '', ('!Formulas', ("#", f13, 1), (), ('buckets', 'rounds', ), ()), False), ('!CutAxis', 'block_kv', '', ('!Formulas', ("#", f14, 1), (), ('buckets', 'rounds', ), ()), False), ), False, True, False, True, (), ('!Formulas', ("#", f15, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f16, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f17, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f17, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', ))), ), ('!Formulas', ("#", f18, 1), (), ('buckets', 'rounds', ), ())),
    'parts (00000 (forward, (), attention), ((packed, False)), elements)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_proj', ), (('!CutAxis', 'block_proj', 'q_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f9, 1), (), ('buckets', 'rounds', ), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f10, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f19, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f12, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f12, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', ))), ('!PartFormulas', ('block_q', 'block_kv', ), (('!CutAxis', 'block_q', '', ('!Formulas', ("#", f13, 1), (), ('buckets', 'rounds', ), ()), False), ('!CutAxis', 'block_kv', '', ('!Formulas', ("#", f14, 1), (), ('buckets', 'rounds', ), ()), False), ), False, True, False, True, (), ('!Formulas', ("#", f15, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f20, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f17, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f17, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', ))), ), ('!Formulas', ("#", f21, 1), (), ('buckets', 'rounds', ), ())),
    'quantities (01100 (forward, (), attention), ((packed, False)))': ('!CompiledQuantities', ('Q', 'R', 'BUCKET', 'ORDER', 'V', 'LSE_acc', 'O_acc', ), ('BUCKET', 'ORDER', 'O_acc', 'LSE_acc', 'O', ), ('block_q', 'block_kv', 'block_proj', ), ('buckets', 'rounds', ), 4, ('!Formulas', ("#", f5, 29), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', 'block_proj', )), ("#", f6, 29)),
    'demands (01100 (forward, (), attention), ((packed, False)))': ('!Demands', (('!FoldedKernel', 'hash', (('query', 'half', 'depth', ), ), (('Q', False, True, ), ('R', False, False, ), ('BUCKET', False, True, ), ), None, False), ('!FoldedKernel', 'sort by bucket', (), (('BUCKET', False, False, ), ('ORDER', False, False, ), ), None, False), ('!FoldedKernel', 'each chunk to itself and the one before', (('query', 'key', 'depth', ), ('query', 'value', 'key', ), ), (('ORDER', False, False, ), ('BUCKET', False, False, ), ('Q', False, False, ), ('ORDER', False, False, ), ('BUCKET', False, False, ), ('Q', False, False, ), ('V', False, False, ), ('O_acc', False, False, ), ('LSE_acc', False, False, ), ), None, False), ('!FoldedKernel', 'combine the rounds', (), (('LSE_acc', False, False, ), ('O_acc', False, False, ), ('O', False, False, ), ), None, False), ), ('!Formulas', ("#", f7, 98), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', 'block_proj', )), ('!Formulas', ("#", f8, 17), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', 'block_proj', )), ('buckets', 'rounds', ), ('block_q', 'block_kv', 'block_proj', )),
    'parts (01100 (forward, (), attention), ((packed, False)), B)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_proj', ), (('!CutAxis', 'block_proj', 'q_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f9, 1), (), ('buckets', 'rounds', ), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f10, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f11, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f12, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f12, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', ))), ('!PartFormulas', ('block_q', 'block_kv', ), (('!CutAxis', 'block_q', '', ('!Formulas', ("#", f13, 1), (), ('buckets', 'rounds', ), ()), False), ('!CutAxis', 'block_kv', '', ('!Formulas', ("#", f14, 1), (), ('buckets', 'rounds', ), ()), False), ), False, True, False, True, (), ('!Formulas', ("#", f15, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f16, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f17, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f17, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', ))), ), ('!Formulas', ("#", f18, 1), (), ('buckets', 'rounds', ), ())),
    'parts (01100 (forward, (), attention), ((packed, False)), elements)': ('!Parts', (('!PartFormulas', ('no_tile', 'block_proj', ), (('!CutAxis', 'block_proj', 'q_len', None, False), ('!CutAxis', 'no_tile', '', ('!Formulas', ("#", f9, 1), (), ('buckets', 'rounds', ), ()), False), ), False, False, False, True, (), ('!Formulas', ("#", f10, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f19, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f12, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', )), ('!Formulas', ("#", f12, 1), (), ('buckets', 'rounds', ), ('no_tile', 'block_proj', ))), ('!PartFormulas', ('block_q', 'block_kv', ), (('!CutAxis', 'block_q', '', ('!Formulas', ("#", f13, 1), (), ('buckets', 'rounds', ), ()), False), ('!CutAxis', 'block_kv', '', ('!Formulas', ("#", f14, 1), (), ('buckets', 'rounds', ), ()), False), ), False, True, False, True, (), ('!Formulas', ("#", f15, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f20, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f17, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', )), ('!Formulas', ("#", f17, 1), (), ('buckets', 'rounds', ), ('block_q', 'block_kv', ))), ), ('!Formulas', ("#", f21, 1), (), ('buckets', 'rounds', ), ())),
}
