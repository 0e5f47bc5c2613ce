"""Compiled formulas of append; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (C_2*T)
    t2 = ((C + C_2))
    t3 = (((8*T) + (e*t0) + (e*t1) + (-(-((T*b_kv*t2))//(32)))))
    return (T, t0, t1, t0, t1, t3, 0, 0, 0, 0, 0, 0, ((1 + t2)), ((8 + (C*e) + (C_2*e))), ((T + (2*t0) + (2*t1))), t3)
def f1(T, C, C_2, C_3, e, b_kv):
    t0 = (C*e)
    t1 = (C_2*e)
    t2 = (8*T)
    t3 = (T*t0)
    t4 = (T*t1)
    t5 = (T*b_kv)
    t6 = (-(-((C*t5))//(32)))
    t7 = (-(-((C_2*t5))//(32)))
    return (0, 0, 0, 0, 0, 0, T, 0, 1, 0, ((8 + t0 + t1)), t2, t2, 1, t3, t3, 1, t4, t4, 1, t6, t6, 1, t7, t7, 1)
def f2(T, C, C_2, C_3, e, b_kv):
    return (1, 1)
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (2*T)
    t1 = (T*e)
    return (((T + (C*t0) + (C_2*t0))), (((8*T) + (C*t1) + (C_2*t1) + (-(-((T*b_kv*((C + C_2))))//(32))))))
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('slots', 'K', 'V', ), ('K_cache', 'V_cache', ), (), (), 1, ('!Formulas', ("#", f0, 16), (), (), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'append K and V to the cache', (), (('slots', False, False, ), ('K', False, False, ), ('V', False, False, ), ('K_cache', False, False, ), ('V_cache', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 26), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
}
