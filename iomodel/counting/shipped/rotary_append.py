"""Compiled formulas of rotary_append; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C, C_2, C_3, e, b_kv):
    t0 = (C_3*T)
    t1 = (C*T)
    t2 = (C_2*T)
    t3 = (e*t1)
    t4 = (((4*t0) + (8*T) + (2*e*t2) + (-(-((b_kv*t2))//(16)))))
    t5 = (2*C_2)
    return (t0, T, t1, t2, t2, t1, t2, t2, (((2*t3) + t4)), 0, 0, 0, 0, 0, 0, ((1 + C + C_3 + t5)), ((8 + (4*C_3) + (C*e) + (e*t5))), ((T + (4*t2) + t0 + t1)), ((t3 + t4)))
def f1(T, C, C_2, C_3, e, b_kv):
    t0 = (4*C_3)
    t1 = (C*e)
    t2 = (C_2*e)
    t3 = (T*t0)
    t4 = (8*T)
    t5 = (T*t1)
    t6 = (T*t2)
    t7 = (-(-((C_2*T*b_kv))//(32)))
    return (0, 0, 0, 0, 0, 0, T, 0, 1, 0, ((8 + (2*t2) + t0 + t1)), t3, t3, 1, t4, t4, 1, t5, t5, 1, t6, t6, 1, t6, t6, 1, t5, t5, 1, t7, t7, 1, t7, t7, 1)
def f2(T, C, C_2, C_3, e, b_kv):
    return (1, 1)
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (C_3*T)
    t1 = (2*T)
    t2 = (C*t1)
    t3 = (C_2*T)
    return (((T + (4*t3) + t0 + t2)), (((4*t0) + (8*T) + (e*t2) + (C_2*e*t1) + (-(-((b_kv*t3))//(16))))))
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('angles', 'slots', 'Q', 'K', 'V', ), ('Q', 'K_cache', 'V_cache', ), (), (), 1, ('!Formulas', ("#", f0, 19), (), (), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'rotate Q and K; append K and V to the cache', (), (('angles', False, False, ), ('slots', False, False, ), ('Q', False, False, ), ('K', False, False, ), ('V', False, False, ), ('Q', False, False, ), ('K_cache', False, False, ), ('V_cache', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 35), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
}
