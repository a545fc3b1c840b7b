// Hooks of this package that work on sessions themselves: such a hook is bound to its harness when that is made. A hook of a host has
// nothing of this, and sees events only.
import type { Services } from '../../engine/wiring.ts'
import type { Hook } from './hooks.ts'

/** What such a hook works with. `wake`: look at a session. */
export type HookHost = { readonly services: Services; readonly wake: (session: string) => Promise<unknown> }

/** Goes on after its hook has returned. */
export interface BoundHook {
  told(event: { readonly session: string }): void
  /** Resolves when there is nothing left to do. */
  idle(): Promise<void>
  /** What goes on is ended now. */
  stop(): void
}

const BIND = Symbol('terret.bind')
type Bindable = { readonly [BIND]?: (host: HookHost) => Promise<BoundHook> }

/** A hook that does nothing but in a harness. What it does is loaded when it is first told. */
export function bindable(type: 'post_run', bind: (host: HookHost) => Promise<BoundHook>): Hook {
  const hook: Hook & Bindable = { type, run: () => undefined, [BIND]: bind }
  return hook
}

const WOKEN = Symbol('terret.woken')

/** Also asked for a run that no message opens: its prompt is then what the session was woken for. */
export function alsoWhenWoken(hook: Hook): Hook {
  return Object.assign({}, hook, { [WOKEN]: true })
}

export function asksWhenWoken(hook: Hook): boolean {
  return WOKEN in hook
}

export type Bindings = { readonly hooks: readonly Hook[]; readonly bound: Bound }
export type Bound = { bind(host: HookHost): void; idle(): Promise<void>; stop(): void }

/** The hooks as a harness asks them; null where none of them is bound. */
export function bindingsOf(hooks: readonly Hook[]): Bindings | null {
  if (!hooks.some((hook) => BIND in (hook ?? {}))) return null
  const made = new Set<Promise<BoundHook>>()
  let host: HookHost | null = null
  const told = (hook: Hook & Bindable): Hook => {
    const bind = hook[BIND]
    if (!bind) return hook
    let one: Promise<BoundHook> | null = null
    return {
      type: 'post_run',
      run: async ({ session }) => {
        if (host === null) return
        one ??= bind(host)
        made.add(one)
        ;(await one).told({ session })
      },
    }
  }
  const each = (act: (one: BoundHook) => unknown): Promise<unknown> =>
    Promise.all([...made].map(async (one) => act(await one)))
  return {
    hooks: hooks.map(told),
    bound: {
      bind: (given) => {
        host = given
      },
      idle: async () => void (await each((one) => one.idle())),
      stop: () => void each((one) => one.stop()).catch(() => {}),
    },
  }
}
