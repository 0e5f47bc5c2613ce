"""Compiled formulas of mamba1; written by `python -m tests.support.shipped_formulas`."""
def f0(N_k, N_q):
    t0 = ((N_k + ((-1)*N_q)))
    return (Minimum(((-1)*t0), t0),)
def f1(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_st, x_e, B_c, B_e):
    t0 = (H*d_v*x_e)
    t1 = (B*t0)
    t2 = (n_st*t1)
    t3 = (N_q*t1)
    t4 = (B*N_q)
    t5 = ((-(-(t0)//(B_e)))*t4)
    t6 = (n_st*t5)
    t7 = (4*t2)
    t8 = (3*t3)
    t9 = (e*t8)
    t10 = (2*n_st)
    t11 = (N_q*t7)
    t12 = (B_c*B_e)
    t13 = (B_c*t10)
    t14 = (4*B_e)
    t15 = (t10*t4)
    t16 = (n_st*t0)
    return (t2, t1, t3, t3, t6, t6, t3, (((4*t1) + (e*t10*t5) + t7 + t9)), 0, t11, t11, (((N_q*t2) + t3)), 0, 0, ((B_e + (3*t12) + (B_e*t10) + t13)), (((B_c*t14) + (e*t13) + (2*e*t12) + (8*B_e*n_st) + t14)), ((t0 + t15 + t16 + t8)), (((4*t0) + (4*t16) + (e*t15) + t9)))
def f2(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_st, x_e, B_c, B_e):
    t0 = (H*d_v*x_e)
    t1 = (n_st*t0)
    return (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ((t0 + t1)), (((4*t0) + (4*t1))))
def f3(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_st, x_e, B_c, B_e):
    t0 = (H*d_v*x_e)
    t1 = (B*(-(-(t0)//(B_e))))
    t2 = ((-(-(N_q)//(B_c)))*t1)
    t3 = (B_c*B_e)
    t4 = (B_e*n_st)
    t5 = (2*e)
    t6 = (t3*t5)
    t7 = (B_c*n_st*t5)
    t8 = (4*B_e)
    t9 = (4*t0)
    t10 = (B*n_st)
    t11 = (N_q*e)
    t12 = (B*t0*t11)
    t13 = (n_st*t1*t11)
    t14 = (t10*t11)
    return (t2, t2, (((t2*t3) + (B_c*t2*t4))), 0, 0, 0, (((t2*t6) + (t2*t7))), 0, t1, t2, 1, 0, (((8*t4) + (B_c*t8) + t6 + t7 + t8)), (t10*t9), (n_st*t9), 1, (B*t9), t9, 1, t12, t12, B, t12, t12, B, t13, t14, B, t13, t14, B, t12, t12, B)
def f4(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_st, x_e, B_c, B_e):
    return (B_e, n_st, B_c, B_e, B_c, n_st, 1, 1)
def f5(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_st, x_e):
    return ((H*d_v*x_e),)
def f6(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_st, x_e, B_c, B_e):
    t0 = (H*d_v*x_e)
    t1 = (B*t0)
    t2 = (4*t1)
    t3 = (N_q*e)
    return ((((n_st*t2) + (3*t1*t3) + (2*B*n_st*(-(-(t0)//(B_e)))*t3) + t2)),)
def f7(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_st, x_e, B_c, B_e):
    t0 = (4*B_e)
    t1 = (2*B_c*e)
    return ((((B_c*t0) + (B_e*t1) + (n_st*t1) + (8*B_e*n_st) + t0)),)
def f8(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_st, x_e, B_c, B_e):
    t0 = (B*H*d_v*x_e)
    t1 = (4*t0)
    return ((((n_st*t1) + (3*N_q*e*t0) + t1)),)
def f9(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_st, x_e):
    return (0,)
def f10(B, H, H_kv, G, N_q, N_k, d, d_v, e, b_kv, p, W_l, W_r, n_st, x_e, B_c, B_e):
    t0 = (2*n_st)
    return (((B_e + (B_c*t0) + (B_e*t0) + (3*B_c*B_e))),)
RECORDS = {
    'requirements ()': (('!CompiledRequirement', 'kv_len', 'q_len = {q_len}, for the scan goes over both', (), ('kv_len', 'q_len', ), ("#", f0, 1), None), ),
    'quantities (01100 (forward, (), attention), ((carry, False), (packed, False)))': ('!CompiledQuantities', ('A', 'SKIP', 'X', 'DT', 'B', 'C', ), ('Y', ), ('block_kv', 'block_channels', ), ('state', 'expand', ), 1, ('!Formulas', ("#", f1, 18), (), ('state', 'expand', ), ('block_kv', 'block_channels', )), ("#", f2, 18)),
    'demands (01100 (forward, (), attention), ((carry, False), (packed, False)))': ('!Demands', (('!FoldedKernel', 'selective scan', (('channel', 'component', 'query', ), ('channel', 'query', 'component', ), ), (('A', False, False, ), ('SKIP', False, False, ), ('X', False, False, ), ('DT', False, False, ), ('B', False, False, ), ('C', False, False, ), ('Y', False, False, ), ), None, False), ), ('!Formulas', ("#", f3, 34), (), ('state', 'expand', ), ('block_kv', 'block_channels', )), ('!Formulas', ("#", f4, 8), (), ('state', 'expand', ), ('block_kv', 'block_channels', )), ('state', 'expand', ), ('block_kv', 'block_channels', )),
    'parts (01100 (forward, (), attention), ((carry, False), (packed, False)), B)': ('!Parts', (('!PartFormulas', ('block_kv', 'block_channels', ), (('!CutAxis', 'block_channels', '', ('!Formulas', ("#", f5, 1), (), ('state', 'expand', ), ()), False), ('!CutAxis', 'block_kv', 'q_len', None, False), ), False, False, False, True, (), ('!Formulas', ("#", f6, 1), (), ('state', 'expand', ), ('block_kv', 'block_channels', )), ('!Formulas', ("#", f7, 1), (), ('state', 'expand', ), ('block_kv', 'block_channels', )), ('!Formulas', ("#", f8, 1), (), ('state', 'expand', ), ('block_kv', 'block_channels', )), ('!Formulas', ("#", f8, 1), (), ('state', 'expand', ), ('block_kv', 'block_channels', ))), ), ('!Formulas', ("#", f9, 1), (), ('state', 'expand', ), ())),
    'parts (01100 (forward, (), attention), ((carry, False), (packed, False)), elements)': ('!Parts', (('!PartFormulas', ('block_kv', 'block_channels', ), (('!CutAxis', 'block_channels', '', ('!Formulas', ("#", f5, 1), (), ('state', 'expand', ), ()), False), ('!CutAxis', 'block_kv', 'q_len', None, False), ), False, False, False, True, (), ('!Formulas', ("#", f6, 1), (), ('state', 'expand', ), ('block_kv', 'block_channels', )), ('!Formulas', ("#", f10, 1), (), ('state', 'expand', ), ('block_kv', 'block_channels', )), ('!Formulas', ("#", f8, 1), (), ('state', 'expand', ), ('block_kv', 'block_channels', )), ('!Formulas', ("#", f8, 1), (), ('state', 'expand', ), ('block_kv', 'block_channels', ))), ), ('!Formulas', ("#", f9, 1), (), ('state', 'expand', ), ())),
}
