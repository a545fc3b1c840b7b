// The plans of the crash test: what a client writes into its messages, for the scripted model to follow.

/** How long a call works, and how much it returns. */
export type Args = { readonly ms: number; readonly bytes: number }
/** What is ordered of children. `which` is one of those that the model has been told of so far. */
export type PlannedOrder =
  | { readonly order: 'spawn'; readonly task: Plan; readonly blocking: boolean; readonly key: string | null }
  | { readonly order: 'many'; readonly tasks: readonly Plan[] }
  | { readonly order: 'wait'; readonly which: number }
  | { readonly order: 'steer'; readonly which: number }
  | { readonly order: 'close'; readonly which: number }
  | { readonly order: 'continue'; readonly which: number; readonly task: Plan }
export type PlannedCall = (Args & { readonly tool: string }) | PlannedOrder
export type PlannedTurn = { readonly thinkMs: number; readonly flaky: boolean; readonly calls: readonly PlannedCall[] }
/** A message is a plan: the turns the model is to take. */
export type Plan = { readonly turns: readonly PlannedTurn[] }
