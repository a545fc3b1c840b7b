// Hooks of this package that need more than a host's hook gets: to work on sessions themselves, or to be asked of runs
// that no message opens. They are marked by symbols, so no host's hook is one by accident.

/** Keeps working after its hook has returned. */
export interface BoundHook {
  told(event: { readonly session: string }): void
  /** Resolves when there is nothing left to do. */
  idle(): Promise<void>
  /** Ends that work now. */
  stop(): void
}

const BIND = Symbol('terret.bind')
/** `check` throws for a harness in which the hook cannot work. */
type HookBinding = { readonly check: (host: unknown) => void; readonly make: (host: unknown) => Promise<BoundHook> }
type BindableHook = { readonly [BIND]?: HookBinding }

/** A hook that hears of ended runs, and works only in a harness. Its worker is created at its first event. */
export function makeBindable<Hook extends object>(hook: Hook, bind: HookBinding): Hook {
  return Object.assign({}, hook, { [BIND]: bind })
}

const WOKEN = Symbol('terret.woken')

/** The hook is also asked for a run that no message opens: its prompt is then the reason for the wake. */
export function alsoWhenWoken<Hook extends object>(hook: Hook): Hook {
  return Object.assign({}, hook, { [WOKEN]: true })
}

export function asksWhenWoken(hook: object): boolean {
  return WOKEN in hook
}

/** The bound hooks of one harness. */
export type HookBindings = { bind(host: unknown): void; idle(): Promise<void>; stop(): void }
type RunHook = (event: { readonly session: string }) => Promise<void>

/** The hooks as a harness asks them; null where none of them is bound. `made` builds a hook from its run function. */
export function bindHooks<Hook extends object>(
  hooks: readonly Hook[],
  made: (run: RunHook) => Hook,
): { readonly hooks: readonly Hook[]; readonly bound: HookBindings } | null {
  if (!hooks.some((hook) => BIND in hook)) return null
  const all = new Set<Promise<BoundHook>>()
  let host: unknown = null
  const bound = (bind: HookBinding): Hook => {
    let one: Promise<BoundHook> | null = null
    return made(async ({ session }) => {
      if (host === null) return
      one ??= bind.make(host)
      all.add(one)
      const hook = await one
      hook.told({ session })
    })
  }
  const each = async (act: (one: BoundHook) => unknown): Promise<void> => {
    await Promise.allSettled([...all].map(async (one) => act(await one)))
  }
  return {
    hooks: hooks.map((hook) => {
      const bind = (hook as BindableHook)[BIND]
      return bind ? bound(bind) : hook
    }),
    bound: {
      bind: (given) => {
        for (const hook of hooks) (hook as BindableHook)[BIND]?.check(given)
        host = given
      },
      idle: () => each((one) => one.idle()),
      stop: () => void each((one) => one.stop()),
    },
  }
}
