// What a workspace may say about itself: less, and never more. A model, an address, a key, a server, a program, a place for traces or
// the name that rules call this place by is the user's to choose; a workspace that names one is refused, because that is how keys are stolen.
import type { Policy } from '../../index.ts'
import { DEFAULT_LIMITS } from '../../kernel/index.ts'
import { MODES, type Mode, type Settings } from './config.ts'
import { EXIT, Refusal } from '../exit.ts'
import { isInside } from './plain-file.ts'

const NOT_ITS_OWN = [
  'model',
  'outputTokensMax',
  'reasoning',
  'endpoints',
  'mcp',
  'skills',
  'tracing',
  'environment',
] as const

export type Narrowing = { readonly file: string; readonly userFile: string; readonly defaultTools: readonly string[] }

/** The user's settings, with less where the workspace wants less. Instructions of both are said, the user's first. */
export function narrowed(user: Settings, own: Settings, { file, userFile, defaultTools }: Narrowing): Settings {
  const forbidden = NOT_ITS_OWN.find((field) => own[field] !== undefined)
  if (forbidden !== undefined) throw notIts(file, forbidden, userFile)
  for (const field of ['bash', 'memory'] as const) if (own[field]) throw notIts(file, field, userFile)
  const { tools = defaultTools } = user
  return {
    ...user,
    ...(own.tools ? { tools: tools.filter((name) => own.tools?.includes(name)) } : {}),
    ...(own.bash === false ? { bash: false } : {}),
    ...(own.memory === false ? { memory: false } : {}),
    ...(own.mode ? { mode: stricter(user.mode ?? 'ask', own.mode) } : {}),
    ...(own.limits ? { limits: lower({ ...DEFAULT_LIMITS, ...user.limits }, own.limits) } : {}),
    ...(own.budget ? { budget: lower(user.budget ?? {}, own.budget) } : {}),
    ...(own.instructions
      ? { instructions: [user.instructions ?? '', own.instructions].filter((text) => text !== '').join('\n\n') }
      : {}),
  }
}

function notIts(file: string, field: string, userFile: string): Refusal {
  const text = `${file}: "${field}" is not for a workspace to choose. Remove it there; your own is in ${userFile}.`
  return new Refusal(EXIT.config, text)
}

/** In the order of the modes, the first is the strictest. */
export function stricter(one: Mode, other: Mode): Mode {
  return MODES[Math.min(MODES.indexOf(one), MODES.indexOf(other))] ?? 'plan'
}

type Amounts<T = number> = Readonly<Record<string, T>>

/** Null is no limit at all. */
function lower(user: Amounts<number | null>, own: Amounts): Amounts {
  const entries = Object.entries(own).map(([name, most]) => [name, Math.min(user[name] ?? most, most)] as const)
  const set = Object.entries(user).filter((entry): entry is [string, number] => entry[1] !== null)
  return { ...Object.fromEntries(set), ...Object.fromEntries(entries) }
}

/** Both hold. The workspace may deny and ask; it may allow nothing. */
export function narrowedPolicy(user: Policy, own: Policy, file: string): Policy {
  const allows = own.rules.findIndex(({ effect }) => effect === 'allow')
  const refused = (what: string): Refusal => new Refusal(EXIT.config, `${file}: ${what} A workspace may only narrow.`)
  if (allows >= 0) throw refused(`rule ${allows + 1} allows something.`)
  const outside = own.writeRoots?.find((root) => user.writeRoots?.some((mine) => isInside(mine, root)) === false)
  if (outside !== undefined)
    throw refused(`"writeRoots" names ${outside}, where your own policy lets nothing be written.`)
  return {
    ...user,
    ...(own.writeRoots ? { writeRoots: own.writeRoots } : {}),
    ...least(user, own),
    // The user's come first: of two questions about one call, theirs is asked.
    rules: [...user.rules, ...own.rules],
    ...(user.onAsk === 'deny' || own.onAsk === 'deny' ? { onAsk: 'deny' } : user.onAsk ? { onAsk: user.onAsk } : {}),
  }
}

function least(user: Policy, own: Policy): Partial<Policy> {
  const both = (['actionsPerHour', 'asksPerHour'] as const).flatMap((name) => {
    const given = [user[name], own[name]].filter((each) => each !== undefined)
    return given.length > 0 ? [[name, Math.min(...given)] as const] : []
  })
  return Object.fromEntries(both)
}
