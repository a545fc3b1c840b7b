// Admission of any text for any schema: what runs fits, what fits runs as it is, what is cut short runs only with what was
// written, and no text makes it throw.
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import type { Json, Proposal } from '../../src/kernel/content.ts'
import { admitCalls } from '../../src/tools/core/admit.ts'
import { defineTool, type Tool } from '../../src/tools/core/tool.ts'
import {
  anyJson,
  fits,
  fitting,
  isObject,
  isPart,
  type JsonObject,
  pollution,
  rootSchema,
  sameJson,
  spoiled,
  JSON_BITS,
} from './json.ts'
import { invented } from './repair.ts'
import { drawn, type Tape } from './tape.ts'
import { hold, target } from './target.ts'

type Subject = (tool: Tool, text: string) => Proposal
type Case = {
  readonly schema: JsonObject
  readonly effect: 'read' | 'once'
  readonly valid: Json | undefined
  readonly text: string
  /** The text is the start of one that fits. */
  readonly cut: boolean
}

const ECHOES = ['arguments', 'args', 'input', 'parameters', 'properties', 'params']
const PIECES = [...JSON_BITS, '"path":', '"__proto__":{', '\ud800', '\n']

function call(tape: Tape): Case {
  const schema = rootSchema(tape)
  const valid = fitting(tape, schema, schema)
  const effect = tape.pick(['read', 'once'] as const)
  if (valid !== undefined && tape.chance(3)) {
    const whole = JSON.stringify(valid, null, tape.pick([0, 1]))
    return {
      schema,
      effect,
      valid,
      text: whole.slice(0, (tape.below(256) * 256 + tape.below(256)) % whole.length),
      cut: true,
    }
  }
  const args = valid === undefined || tape.chance(8) ? anyJson(tape) : spoiled(tape, valid)
  return { schema, effect, valid, text: told(tape, args), cut: false }
}

/** The ways in which models hand in arguments. */
function told(tape: Tape, args: Json): string {
  const text = JSON.stringify(args)
  switch (tape.below(8)) {
    case 0:
      return text
    case 1:
      return JSON.stringify({ [tape.pick(ECHOES)]: args, ...(tape.chance(2) ? { name: 'act' } : {}) })
    case 2:
      return `\`\`\`json\n${text}\n\`\`\``
    case 3:
      return JSON.stringify(text)
    case 4:
      return text.slice(0, tape.below(256))
    case 5: {
      const at = tape.below(Math.min(256, text.length + 1))
      return text.slice(0, at) + tape.pick(PIECES) + text.slice(at + tape.below(2))
    }
    case 6:
      return tape.list(20, () => tape.pick(PIECES)).join('')
    default:
      return tape.pick(['{"x":', '[', '{"x":[']).repeat(1 + tape.below(250) * 4)
  }
}

const redactor = { idle: true, find: () => null, json: (value: Json) => value }
const asking = { now: 0, clock: runtimeClock, approvalMs: null, policy: { rules: [] }, environment: null, redactor }

function admitOne(tool: Tool, text: string): Proposal {
  const admitted = admitCalls([{ id: 'id', tool: tool.name, args: text }], new Map([[tool.name, tool]]), asking)
  if (admitted instanceof Promise || admitted[0] === undefined) throw new Error('one call did not become one proposal')
  return admitted[0]
}

function toolFor({ schema, effect }: Case): Tool {
  const validate = (value: unknown) =>
    fits(value as Json, schema, schema) ? { value } : { issues: [{ message: 'does not fit', path: ['path'] }] }
  const input = { '~standard': { validate, jsonSchema: { input: () => schema } } }
  return defineTool({ name: 'act', description: 'acts', input, effect, execute: () => 'done' })
}

export const admissions = target<Subject, Case>({
  name: 'admit',
  real: admitOne,
  cases: drawn(call, 96),
  planted: {
    'what does not fit is let through': (tool, text) => {
      const { gate: _, ...proposal } = admitOne(tool, text)
      return proposal
    },
    'half a text is taken for a whole one': (tool, text) => {
      const proposal = admitOne(tool, `${text}"}`)
      return proposal.gate ? admitOne(tool, text) : proposal
    },
    'text that is no JSON throws': (tool, text) => {
      JSON.parse(text)
      return admitOne(tool, text)
    },
    'arguments are merged into an object': (tool, text) => {
      const proposal = admitOne(tool, text)
      const args: Record<string, Json> = {}
      for (const [key, item] of Object.entries(proposal.args as JsonObject)) args[key] = item
      return { ...proposal, args }
    },
  },
  check: (subject, one) => {
    const { schema, valid, text, cut } = one
    const tool = toolFor(one)
    const { args, gate } = subject(tool, text)
    const spoilt = pollution(args)
    hold(spoilt === null, () => spoilt ?? '')
    if (gate?.type === 'refuse') {
      const { message } = gate.failure
      hold(
        message !== '' && Buffer.byteLength(message) <= 2_048,
        () => `a refusal of ${Buffer.byteLength(message)} bytes`,
      )
    } else {
      hold(fits(args, schema, schema), () => `${JSON.stringify(args)} was admitted and does not fit`)
      const strange = inventedBy(text, args)
      hold(strange === undefined, () => `${strange} was invented: ${JSON.stringify(args)}`)
      hold(
        !cut || isPart(args, valid),
        () => `${JSON.stringify(args)} was made of the start of ${JSON.stringify(valid)}`,
      )
    }
    if (valid === undefined) return
    const whole = subject(tool, JSON.stringify(valid))
    hold(
      whole.gate === undefined && sameJson(whole.args, valid),
      () => `${JSON.stringify(valid)} fits and was not admitted as it is`,
    )
  },
})

/** For text that is JSON: nothing is admitted that is not in it. */
function inventedBy(text: string, args: Json): string | undefined {
  try {
    const value = JSON.parse(text) as Json
    return isObject(value) ? invented(args, value) : undefined
  } catch {
    return undefined
  }
}
