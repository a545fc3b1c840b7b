// The blueprint of an agent, or of what a run was given, as Markdown and as a Mermaid drawing. It reads nothing.
import type { Json } from '../../kernel/index.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { drawingIn, mermaidOf } from '../../view/graph-drawing.ts'

/** `effect` and `approval` are null where a log has no call of the tool: it records them with the calls. */
export type BlueprintTool = {
  readonly name: string
  readonly description: string
  readonly effect: string | null
  readonly approval: string | null
}

/** `hash` covers `document`, whose other fields are those of the agent's setup or of the run's record. */
export type Blueprint = {
  readonly title: string
  /** The session and its run. They are not hashed: two runs that were given the same have one hash. */
  readonly source: { readonly session?: string; readonly run?: number }
  readonly hash: string
  readonly document: {
    readonly agent: string
    readonly model: string | null
    readonly planner: string
    readonly instructions: string
    readonly tools: readonly BlueprintTool[]
    readonly limits: Json
    readonly policy: Json
    /** The agents it may start. Null where the log does not say. */
    readonly children: readonly string[] | null
  } & { readonly [name: string]: unknown }
}

export function blueprintMarkdown({ title, source, hash, document }: Blueprint): readonly string[] {
  const { agent, model, planner, instructions, tools, limits, policy, children, ...others } = document
  const { session = null, run = null } = source
  const facts = {
    Agent: agent,
    Model: model ?? NOT_SAID,
    Planner: planner,
    Session: session,
    Run: run,
    'SHA-256': hash,
  }
  const rows = tools.map((tool) => {
    const { name, effect, approval, description } = tool
    return `| ${[name, effect ?? NOT_SAID, approval ?? NOT_SAID, description].map(cellText).join(' | ')} |`
  })
  const list =
    children === null ? 'The log does not say.' : children.map((name) => `- ${cellText(name)}`).join('\n') || 'None.'
  const lines = [
    `# ${oneLine(title)}`,
    '',
    ...Object.entries(facts).flatMap(([name, value]) =>
      value === null ? [] : [`- ${name}: ${cellText(String(value))}`],
    ),
    ...section('Instructions', fenceText(instructions || '(none)', '')),
    ...section('Tools', ['| tool | effect | approval | what it does |', '|---|---|---|---|', ...rows]),
    ...section('Approvals', policy === null ? ['No rules.'] : fenceText(jsonText(policy), 'json')),
    ...section('Limits', ['| limit | value |', '|---|--:|', ...limitRows(limits)]),
    ...section('Agents it may start', [list]),
    ...section('Other settings', fenceText(jsonText({ ...others, graph: undefined }), 'json')),
  ]
  return clean(lines.join('\n')).split('\n')
}

/** A graph as it runs; an agent with its tools and the agents it may start. */
export function blueprintMermaid({ document }: Blueprint): readonly string[] {
  const { agent, model, planner, instructions, tools, children } = document
  const graph = planner === 'model' ? null : drawingIn(document['graph'] ?? instructions)
  if (graph !== null) return clean(mermaidOf(graph)).trimEnd().split('\n')
  return [
    'flowchart LR',
    `  agent(["${nodeText(agent)}${model === null ? '' : `, ${nodeText(model)}`}"])`,
    ...tools.map(({ name, effect, approval }, i) => {
      const arrow = approval === null || approval === 'auto' ? '-->' : `-- ${nodeText(approval)} -->`
      return `  agent ${arrow} t${i}["${nodeText(name)}${effect === null ? '' : `: ${nodeText(effect)}`}"]`
    }),
    ...(children ?? []).map((name, i) => `  agent --> c${i}[["${nodeText(name)}"]]`),
  ]
}

function limitRows(limits: Json): readonly string[] {
  return Object.entries(limits ?? {}).map(
    ([name, value]) => `| ${cellText(name)} | ${value === null ? 'none' : value} |`,
  )
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return ['', `## ${title}`, '', ...lines]
}

/** The fence is longer than any in the text, so the text cannot end it. */
function fenceText(text: string, language: string): readonly string[] {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return [`${fence}${language}`, ...text.split('\n'), fence]
}

const CELL_CHARS = 200
const NOT_SAID = 'not recorded'

function cellText(text: string): string {
  return oneLine(text, CELL_CHARS).replace(/[\\|`<[\]]/g, '\\$&')
}

/** Mermaid writes these characters as codes. */
function nodeText(text: string): string {
  return oneLine(text, CELL_CHARS).replace(/["#<>|\\`;]/g, (char) => `#${char.codePointAt(0)};`)
}

function jsonText(value: unknown): string {
  return JSON.stringify(value ?? null, null, 2)
}
