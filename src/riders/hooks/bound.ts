// Hooks of this package that need more than a hook of a host gets: to work on sessions themselves, or to be asked of runs that no message
// opens. They are marked by symbols, so no host's hook is one by accident.

/** Goes on after its hook has returned. */
export interface BoundHook {
  told(event: { readonly session: string }): void
  /** Resolves when there is nothing left to do. */
  idle(): Promise<void>
  /** What goes on is ended now. */
  stop(): void
}

const BIND = Symbol('terret.bind')
/** `check` throws for a harness that it cannot work in. */
type Bind = { readonly check: (host: unknown) => void; readonly make: (host: unknown) => Promise<BoundHook> }
type Bindable = { readonly [BIND]?: Bind }

/** A hook that is told of ended runs, and does something only in a harness. What it does is made when it is first told. */
export function bindable<Hook extends object>(hook: Hook, bind: Bind): Hook {
  return Object.assign({}, hook, { [BIND]: bind })
}

const WOKEN = Symbol('terret.woken')

/** Also asked for a run that no message opens: its prompt is then what the session was woken for. */
export function alsoWhenWoken<Hook extends object>(hook: Hook): Hook {
  return Object.assign({}, hook, { [WOKEN]: true })
}

export function asksWhenWoken(hook: object): boolean {
  return WOKEN in hook
}

/** What is bound in one harness. */
export type Bound = { bind(host: unknown): void; idle(): Promise<void>; stop(): void }
type Run = (event: { readonly session: string }) => Promise<void>

/** The hooks as a harness asks them; null where none of them is bound. `made` makes a hook of what is run for it. */
export function bindingsOf<Hook extends object>(
  hooks: readonly Hook[],
  made: (run: Run) => Hook,
): { readonly hooks: readonly Hook[]; readonly bound: Bound } | null {
  if (!hooks.some((hook) => BIND in hook)) return null
  const all = new Set<Promise<BoundHook>>()
  let host: unknown = null
  const bound = (bind: Bind): Hook => {
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
      const bind = (hook as Bindable)[BIND]
      return bind ? bound(bind) : hook
    }),
    bound: {
      bind: (given) => {
        for (const hook of hooks) (hook as Bindable)[BIND]?.check(given)
        host = given
      },
      idle: () => each((one) => one.idle()),
      stop: () => void each((one) => one.stop()),
    },
  }
}
