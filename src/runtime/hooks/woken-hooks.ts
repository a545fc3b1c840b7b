// Marks hooks of this package that are also asked of runs that no message opens. The mark is a symbol, so no host's hook
// has it by accident.

const WOKEN = Symbol('terret.woken')

/** The hook is also asked for a run that no message opens: its prompt is then the reason for the wake. */
export function alsoWhenWoken<Hook extends object>(hook: Hook): Hook {
  return Object.assign({}, hook, { [WOKEN]: true })
}

export function asksWhenWoken(hook: object): boolean {
  return WOKEN in hook
}
