"""Compiled formulas of append_latent; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (((8*T) + (e*t0) + (-(-((b_kv*t0))//(32)))))
    return (T, t0, t0, t1, 0, 0, 0, 0, 0, 0, ((1 + C)), ((8 + (C*e))), ((T + (2*t0))), t1)
def f1(T, C, C_2, C_3, e, b_kv):
    t0 = (C*e)
    t1 = (8*T)
    t2 = (T*t0)
    t3 = (-(-((C*T*b_kv))//(32)))
    return (0, 0, 0, 0, 0, 0, T, 0, 1, 0, ((8 + t0)), t1, t1, 1, t2, t2, 1, t3, t3, 1)
def f2(T, C, C_2, C_3, e, b_kv):
    return (1, 1)
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    return (((T + (2*t0))), (((8*T) + (e*t0) + (-(-((b_kv*t0))//(32))))))
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('slots', 'K', ), ('K_cache', ), (), (), 1, ('!Formulas', ("#", f0, 14), (), (), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'append the latent to the cache', (), (('slots', False, False, ), ('K', False, False, ), ('K_cache', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 20), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
}
