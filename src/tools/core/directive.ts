// `loop_directive`: how a model says what comes after this run: sleep or continue, what to remember, when to look again. The
// call changes nothing by itself: what it asks for lands with its result as events. There is no loop here: a wake begins a run.
import { callKey, type Event } from '../../kernel/event.ts'
import type { CallKey } from '../../kernel/content.ts'
import type { Store } from '../../ports/store.ts'
import { count, having, needed, optionsOf } from '../../options.ts'
import { type Follow, output } from './output.ts'
import { choice, type Field, flag, type Infer, integer, list, object, optional, text } from './schema.ts'
import { defineTool, type Tool } from './tool.ts'

export const LOOP_DIRECTIVE = 'loop_directive'

/** Sooner than this is a follow-up, and those are counted. */
const DELAY_SECONDS_MIN = 60
const DAY_SECONDS = 86_400
const FOLLOW_UPS_MAX = 3
const FOLLOW_UP_SECONDS = 0
/** Each wake may ask for three more: all that wait together have a bound too. */
const WAKES_PENDING_MAX = 8

/** As a model must write it, or as the log has it: there a secret may have become a longer mark. */
function shapes(asWritten: boolean) {
  const words = (description: string, max: number): Field<string> => text(description, asWritten ? { min: 1, max } : {})
  const fields = {
    kind: choice('lesson: what works. correction: what you were told. error: what fails.', KINDS),
    title: words('What it is about, in a few words.', TITLE_CHARS),
    detail: words('What to do, or not to do, next time.', DETAIL_CHARS),
    promote: optional(flag('It should stand in MEMORY.md.')),
    key: optional(words(KEY, 80)),
  }
  const learning = object(fields)
  const wake = object({
    reason: words('Why.', 200),
    delay_seconds: integer('In how many seconds.', { min: DELAY_SECONDS_MIN, max: DAY_SECONDS }),
    note: optional(words('What to know then.', 400)),
    priority: optional(choice('high: before other wakes whose time has come. Default normal.', ['normal', 'high'])),
    key: optional(words(KEY, 80)),
  })
  const directive = object({
    outcome: choice('sleep: until somebody writes or a wake comes. continue: go on in a run of its own, soon.', [
      'sleep',
      'continue',
    ]),
    summary: words('Where things stand, for whoever goes on: you, later.', 2_000),
    follow_up_seconds: optional(integer('For "continue": how long to wait first.', { max: DAY_SECONDS })),
    wakes: optional(list('When to look again.', wake, { max: 3 })),
    learnings: optional(list('What later sessions should know.', learning, { max: 3 })),
  })
  return { fields, directive }
}

/** How long a title and a detail may be. */
export const TITLE_CHARS = 120
export const DETAIL_CHARS = 400
/** How many events an extracted learning may name. */
const SOURCES_MAX = 20

const KEY = 'Asked for again under the same key, it is the same one.'
export const KINDS = ['lesson', 'correction', 'error'] as const
const stored = shapes(false)
/** `from`: the events it was extracted from. What a model says in a directive has none. */
const storedLearning = object({
  ...stored.fields,
  from: optional(list('The events it is taken from.', integer('Its number.'), { max: SOURCES_MAX })),
})

/** What a directive is, checked strictly: as the arguments of the tool, and as the block of a model without tools. */
export const { directive } = shapes(true)

export type Directive = Infer<typeof directive>
export type Learning = Infer<typeof storedLearning>
export type LearningKind = Learning['kind']

type DirectiveOptions = {
  readonly store: Pick<Store, 'now' | 'read' | 'card'>
  /** How often in a row a session may go on by itself. Default 3; 0 is never. */
  readonly followUpsMax?: number
  /** How long a session waits before it goes on, where the model does not say. Default 0. */
  readonly followUpSeconds?: number
}
const checkOptions = optionsOf<DirectiveOptions>('directiveTool', {
  store: needed(having('give the store of the harness', 'now', 'read', 'card')),
  followUpsMax: count(0, 100),
  followUpSeconds: count(0, DAY_SECONDS),
})

/** Give it the store of the harness: it reads there how often this session went on by itself. */
export function directiveTool(options: DirectiveOptions): Tool {
  checkOptions(options)
  const { store, followUpsMax = FOLLOW_UPS_MAX, followUpSeconds = FOLLOW_UP_SECONDS } = options
  return defineTool<Directive>({
    name: LOOP_DIRECTIVE,
    description: 'Says what happens after this run, and what to remember. Without it the session sleeps.',
    input: directive,
    // Nothing of the world is touched, so a call that was lost is simply made again.
    effect: 'read',
    instructions: `If work is left for later, or something was learned, call ${LOOP_DIRECTIVE} once before your last words.`,
    execute: async (said, { session, call }) => {
      const { outcome, follow_up_seconds = followUpSeconds, wakes = [], learnings = [] } = said
      const now = store.now()
      const before = outcome === 'continue' ? await followUpsBefore(store, session, call) : 0
      const goesOn = outcome === 'continue' && before < followUpsMax
      const room = Math.max(0, WAKES_PENDING_MAX - ((await store.card(session))?.wakes ?? 0))
      const queued = wakes.slice(0, room).map(
        ({ reason, delay_seconds, note = '', key, priority }, i): Wake => ({
          type: 'wake.scheduled',
          ...(priority === 'high' ? { urgent: true } : {}),
          due: now + delay_seconds * 1_000,
          reason: note === '' ? reason : `${reason}: ${note}`,
          // Of its own kind: no key of a model is the key of a follow-up, of the host, or of a wake without one.
          key: key === undefined ? `call:${call}.${i}` : `wake:${key}`,
        }),
      )
      const followUp: Wake = {
        type: 'wake.scheduled',
        due: now + follow_up_seconds * 1_000,
        reason: FOLLOW_UP,
        key: `${FOLLOW_UP_KEY}${before + 1}`,
      }
      const notes = learnings.map((one): Follow => {
        return { type: 'note.added', kind: 'learning', text: learningText(one) }
      })
      const follows = [...(goesOn ? [followUp] : []), ...queued, ...notes]
      return output({ content: saidOf(said, { goesOn, queued, followUpsMax }), follows })
    },
  })
}

type Wake = Extract<Follow, { type: 'wake.scheduled' }>

const FOLLOW_UP = 'session.follow_up'
const FOLLOW_UP_KEY = 'follow-up:'

function saidOf({ outcome, wakes = [], learnings = [] }: Directive, done: Done): string {
  const { goesOn, queued, followUpsMax } = done
  const lines = queued.map(({ due, reason }, i) => {
    // The first stands, and only the fold knows whether there is one.
    const unless = wakes[i]?.key === undefined ? 'You' : `Unless one waits under "${wakes[i].key}" already, you`
    return `${unless} will look again at ${new Date(due).toISOString()}: ${reason}`
  })
  if (queued.length < wakes.length)
    lines.push(`Not queued: ${wakes.length - queued.length}, because ${WAKES_PENDING_MAX} wakes may wait at a time.`)
  if (learnings.length > 0) lines.push(`Kept for later sessions: ${learnings.length}.`)
  if (goesOn) lines.push('After this run you go on in another.')
  else if (outcome === 'continue') lines.push(`You went on ${followUpsMax} times in a row: now the session sleeps.`)
  else lines.push('After this run the session sleeps.')
  return `${lines.join('\n')}\nGive your answer now.`
}

type Done = { readonly goesOn: boolean; readonly queued: readonly Wake[]; readonly followUpsMax: number }

/** How often in a row this session has gone on by itself: the run of this call says so, by what began it. */
async function followUpsBefore(store: Pick<Store, 'read'>, session: string, call: CallKey): Promise<number> {
  for (let before = Number(call.split('.')[0]); before > 1; before -= PAGE) {
    const after = Math.max(0, before - 1 - PAGE)
    const { events } = await store.read(session, after, before - 1 - after)
    const start = events.findLast((event) => event.type === 'run.started')
    if (start?.type === 'run.started') return followUpsOf(start)
  }
  return 0
}

const PAGE = 200

/** A run that a message opened begins to count anew. */
export function followUpsOf({ inputs, wakes }: Extract<Event, { type: 'run.started' }>): number {
  if (inputs.length > 0) return 0
  const counts = wakes
    .filter((key) => key.startsWith(FOLLOW_UP_KEY))
    .map((key) => Number(key.slice(FOLLOW_UP_KEY.length)))
  return Math.max(0, ...counts.filter(Number.isSafeInteger))
}

/** The directives among the calls of a reply, by the key of their call. */
export function directivesIn(
  reply: Extract<Event, { type: 'agent.message' }>,
): readonly (readonly [CallKey, Directive])[] {
  return reply.calls.flatMap(({ tool, args }, index) => {
    const checked = tool === LOOP_DIRECTIVE ? stored.directive.check(args) : null
    return checked && 'value' in checked ? [[callKey(reply.seq, index), checked.value] as const] : []
  })
}

/** A learning as a note has it: one line of JSON, for the model and for readers of the log. */
export function learningText({ kind, title, detail, key, promote, from }: Learning): string {
  const more = { ...(key === undefined ? {} : { key }), ...(promote ? { promote } : {}), ...(from ? { from } : {}) }
  // No text in it ends the block that it stands in.
  return JSON.stringify({ kind, title, detail, ...more }).replaceAll('</', '<\\/')
}

/** Null for a note that holds no learning of ours. */
export function readLearning(note: string): Learning | null {
  try {
    const checked = storedLearning.check(JSON.parse(note))
    return 'value' in checked ? checked.value : null
  } catch {
    return null
  }
}
