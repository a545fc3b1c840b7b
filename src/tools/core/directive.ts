// The tool `loop_directive`: a model says what comes after this run: sleep or continue, what to remember, when to look
// again. The call changes nothing by itself: its requests land with its result as events. There is no loop here: a wake
// begins a run.
import { callKey, type Event } from '../../kernel/event.ts'
import type { CallKey } from '../../kernel/content.ts'
import type { CompleteStore } from '../../ports/store.ts'
import { countCheck, methodsCheck, requiredCheck, optionsChecker } from '../../options.ts'
import { type FollowEvent, output } from './tool-output.ts'
import {
  choiceField,
  type Field,
  flagField,
  type Infer,
  integerField,
  listField,
  objectField,
  optionalField,
  textField,
} from './argument-schema.ts'
import { defineTool, type Tool } from './tool.ts'

/** The name of the tool by which a model notes what it learned. */
export const LOOP_DIRECTIVE = 'loop_directive'

/** A shorter delay is a follow-up, and follow-ups are counted. */
const DELAY_SECONDS_MIN = 60
const DAY_SECONDS = 86_400
const FOLLOW_UPS_MAX = 3
const FOLLOW_UP_SECONDS = 0
/** Each wake may ask for three more, so all waiting wakes together have a bound too. */
const WAKES_PENDING_MAX = 8

/** The shape that a model must write, or the shape in the log, where a secret may have become a longer mark. */
function directiveShapes(asWritten: boolean) {
  const words = (description: string, max: number): Field<string> =>
    textField(description, asWritten ? { min: 1, max } : {})
  const fields = {
    kind: choiceField('lesson: what works. correction: what you were told. error: what fails.', KINDS),
    title: words('What it is about, in a few words.', TITLE_CHARS),
    detail: words('What to do, or not to do, next time.', DETAIL_CHARS),
    promote: optionalField(flagField('It should stand in MEMORY.md.')),
    key: optionalField(words(KEY, 80)),
  }
  const learning = objectField(fields)
  const wake = objectField({
    reason: words('Why.', 200),
    delay_seconds: integerField('In how many seconds.', { min: DELAY_SECONDS_MIN, max: DAY_SECONDS }),
    note: optionalField(words('What to know then.', 400)),
    priority: optionalField(
      choiceField('high: before other wakes whose time has come. Default normal.', ['normal', 'high']),
    ),
    key: optionalField(words(KEY, 80)),
  })
  const directive = objectField({
    outcome: choiceField('sleep: until somebody writes or a wake comes. continue: go on in a run of its own, soon.', [
      'sleep',
      'continue',
    ]),
    summary: words('Where things stand, for whoever goes on: you, later.', 2_000),
    follow_up_seconds: optionalField(integerField('For "continue": how long to wait first.', { max: DAY_SECONDS })),
    wakes: optionalField(listField('When to look again.', wake, { max: 3 })),
    learnings: optionalField(listField('What later sessions should know.', learning, { max: 3 })),
  })
  return { fields, directive }
}

/** The length limits of a title and a detail. */
export const TITLE_CHARS = 120
export const DETAIL_CHARS = 400
/** The limit of events that an extracted learning may name. */
const SOURCES_MAX = 20

const KEY = 'Asked for again under the same key, it is the same one.'
export const KINDS = ['lesson', 'correction', 'error'] as const
const storedShapes = directiveShapes(false)
/** `from`: the events it was extracted from. A learning that a model puts in a directive has none. */
const storedLearning = objectField({
  ...storedShapes.fields,
  from: optionalField(listField('The events it is taken from.', integerField('Its number.'), { max: SOURCES_MAX })),
})

/** The strict shape of a directive: the arguments of the tool, and the block of a model without tools. */
export const { directive } = directiveShapes(true)

/** What a model may say at the end of a turn: what it learned, and when it wants to be woken. */
export type Directive = Infer<typeof directive>
/** Something a model learned, as it is kept. */
export type Learning = Infer<typeof storedLearning>
/** What kind of thing was learned. */
export type LearningKind = Learning['kind']

type DirectiveOptions = {
  readonly store: Pick<CompleteStore, 'now' | 'read' | 'card'>
  /** How often in a row a session may continue by itself. Default 3; 0 is never. */
  readonly followUpsMax?: number
  /** How long a session waits before it continues, if the model does not say. Default 0. */
  readonly followUpSeconds?: number
}
const checkOptions = optionsChecker<DirectiveOptions>('directiveTool', {
  store: requiredCheck(methodsCheck('give the store of the harness', 'now', 'read', 'card')),
  followUpsMax: countCheck(0, 100),
  followUpSeconds: countCheck(0, DAY_SECONDS),
})

/** Pass the store of the harness: the tool reads there how often this session continued by itself. */
export function directiveTool(options: DirectiveOptions): Tool {
  checkOptions(options)
  const { store, followUpsMax = FOLLOW_UPS_MAX, followUpSeconds = FOLLOW_UP_SECONDS } = options
  return defineTool<Directive>({
    name: LOOP_DIRECTIVE,
    description: 'Says what happens after this run, and what to remember. Without it the session sleeps.',
    input: directive,
    // The call touches nothing outside, so a lost call is simply repeated.
    effect: 'read',
    instructions: `If work is left for later, or something was learned, call ${LOOP_DIRECTIVE} once before your last words.`,
    execute: async (said, { session, call }) => {
      const { outcome, follow_up_seconds = followUpSeconds, wakes = [], learnings = [] } = said
      const now = store.now()
      const before = outcome === 'continue' ? await countFollowUps(store, session, call) : 0
      const goesOn = outcome === 'continue' && before < followUpsMax
      const room = Math.max(0, WAKES_PENDING_MAX - ((await store.card(session))?.wakes ?? 0))
      const queued = wakes.slice(0, room).map(
        ({ reason, delay_seconds, note = '', key, priority }, i): ScheduledWake => ({
          type: 'wake.scheduled',
          ...(priority === 'high' ? { urgent: true } : {}),
          due: now + delay_seconds * 1_000,
          reason: note === '' ? reason : `${reason}: ${note}`,
          // The key has its own prefix: a model's key is never that of a follow-up, of the host, or of a wake without a
          // key.
          key: key === undefined ? `call:${call}.${i}` : `wake:${key}`,
        }),
      )
      const followUp: ScheduledWake = {
        type: 'wake.scheduled',
        due: now + follow_up_seconds * 1_000,
        reason: FOLLOW_UP,
        key: `${FOLLOW_UP_KEY}${before + 1}`,
      }
      const notes = learnings.map((one): FollowEvent => {
        return { type: 'note.added', kind: 'learning', text: learningText(one) }
      })
      const follows = [...(goesOn ? [followUp] : []), ...queued, ...notes]
      return output({ content: describeDirective(said, { goesOn, queued, followUpsMax }), follows })
    },
  })
}

type ScheduledWake = Extract<FollowEvent, { type: 'wake.scheduled' }>

const FOLLOW_UP = 'session.follow_up'
const FOLLOW_UP_KEY = 'follow-up:'

function describeDirective({ outcome, wakes = [], learnings = [] }: Directive, done: DirectiveOutcome): string {
  const { goesOn, queued, followUpsMax } = done
  const lines = queued.map(({ due, reason }, i) => {
    // The first wake under a key stands, and only the fold knows whether there is one.
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

type DirectiveOutcome = {
  readonly goesOn: boolean
  readonly queued: readonly ScheduledWake[]
  readonly followUpsMax: number
}

/** How often in a row this session has continued by itself, read from the start of this call's run. */
async function countFollowUps(store: Pick<CompleteStore, 'read'>, session: string, call: CallKey): Promise<number> {
  for (let before = Number(call.split('.')[0]); before > 1; before -= PAGE) {
    const after = Math.max(0, before - 1 - PAGE)
    const { events } = await store.read(session, after, before - 1 - after)
    const start = events.findLast((event) => event.type === 'run.started')
    if (start?.type === 'run.started') return followUpsOf(start)
  }
  return 0
}

const PAGE = 200

/** A run that a message opened resets the count. */
export function followUpsOf({ inputs, wakes }: Extract<Event, { type: 'run.started' }>): number {
  if (inputs.length > 0) return 0
  const counts = wakes
    .filter((key) => key.startsWith(FOLLOW_UP_KEY))
    .map((key) => Number(key.slice(FOLLOW_UP_KEY.length)))
  return Math.max(0, ...counts.filter(Number.isSafeInteger))
}

/** The directives among the calls of a reply, with the keys of their calls. */
export function directivesIn(
  reply: Extract<Event, { type: 'agent.message' }>,
): readonly (readonly [CallKey, Directive])[] {
  return reply.calls.flatMap(({ tool, args }, index) => {
    const checked = tool === LOOP_DIRECTIVE ? storedShapes.directive.check(args) : null
    return checked && 'value' in checked ? [[callKey(reply.seq, index), checked.value] as const] : []
  })
}

/** The text of a learning's note: one line of JSON, for the model and for readers of the log. */
export function learningText({ kind, title, detail, key, promote, from }: Learning): string {
  const more = { ...(key === undefined ? {} : { key }), ...(promote ? { promote } : {}), ...(from ? { from } : {}) }
  // Escape `</`, so that no text in it closes the block around it.
  return JSON.stringify({ kind, title, detail, ...more }).replaceAll('</', '<\\/')
}

/** Returns null for a note that holds no learning in our format. */
export function readLearning(note: string): Learning | null {
  try {
    const checked = storedLearning.check(JSON.parse(note))
    return 'value' in checked ? checked.value : null
  } catch {
    return null
  }
}
