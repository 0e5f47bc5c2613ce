"""Compiled formulas of combine_experts; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C, C_2, C_3, e, b_kv):
    t0 = (C_2*T)
    t1 = (C*t0)
    t2 = (C*T)
    t3 = (C*e)
    t4 = (((4*t0) + (e*t2) + (t0*t3)))
    return (t0, t1, t2, t4, 0, 0, 0, 0, 0, 0, ((C_2 + (2*C))), (((4*C) + (4*C_2) + t3)), ((t0 + t1 + t2)), t4)
def f1(T, C, C_2, C_3, e, b_kv):
    t0 = (4*C_2)
    t1 = (C*e)
    t2 = (T*t0)
    t3 = (T*t1)
    t4 = (C_2*t3)
    return (0, 0, 0, 0, 0, 0, T, 0, 1, 0, (((4*C) + t0 + t1)), t2, t2, 1, t4, t4, 1, t3, t3, 1)
def f2(T, C, C_2, C_3, e, b_kv):
    return (1, 1)
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (C_2*T)
    t2 = (C_2*t0)
    return (((t0 + t1 + t2)), (((4*t1) + (e*t0) + (e*t2))))
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('router_weights', 'outputs', ), ('y', ), (), (), 1, ('!Formulas', ("#", f0, 14), (), (), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'add up the experts of a token', (), (('router_weights', False, False, ), ('outputs', False, False, ), ('y', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 20), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
}
