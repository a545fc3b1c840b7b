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
  /** Where it comes from, for people: these lines are not hashed. */
  readonly about: readonly (readonly [name: string, value: string])[]
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

export function blueprintMarkdown({ title, about, hash, document }: Blueprint): readonly string[] {
  const { agent, model, planner, instructions, tools, limits, policy, children, ...others } = document
  const facts = [['Agent', agent], ['Model', model ?? 'not recorded'], ['Planner', planner], ...about, ['SHA-256', hash]]
  const rows = tools.map((tool) => {
    const { name, effect, approval, description } = tool
    return `| ${[name, effect ?? 'not recorded', approval ?? 'not recorded', description].map(cellText).join(' | ')} |`
  })
  const list = children === null ? 'Not recorded.' : children.map((name) => `- ${cellText(name)}`).join('\n') || 'None.'
  const lines = [
    `# ${oneLine(title)}`,
    '',
    ...facts.map(([name = '', value = '']) => `- ${name}: ${cellText(value)}`),
    ...section('Instructions', fenced(instructions || '(none)', '')),
    ...section('Tools', ['| tool | effect | approval | what it does |', '|---|---|---|---|', ...rows]),
    ...section('Approvals', fenced(jsonText(policy), 'json')),
    ...section('Limits', fenced(jsonText(limits), 'json')),
    ...section('Agents it may start', [list]),
    ...section('Other settings', fenced(jsonText(withoutTexts(others)), 'json')),
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

function section(title: string, lines: readonly string[]): readonly string[] {
  return ['', `## ${title}`, '', ...lines]
}

/** The fence is longer than any in the text, so the text cannot end it. */
function fenced(text: string, language: string): readonly string[] {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return [`${fence}${language}`, ...text.split('\n'), fence]
}

const CELL_CHARS = 200

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

/** The drawing of a graph has a document of its own. */
function withoutTexts({ graph: _graph, ...others }: Readonly<Record<string, unknown>>): object {
  return others
}
