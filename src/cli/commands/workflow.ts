// `terret workflow`: the workflows that come with the command line, as a drawing or as JSON. It runs nothing.
import type { Call } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { print, printJson } from '../present/print.ts'
import { graphsOf } from '../state/workflows.ts'

const FORMATS = ['mermaid', 'json'] as const

export async function workflow(call: Call): Promise<number> {
  const given = call.text('format') ?? (call.is('json') ? 'json' : 'mermaid')
  const format = FORMATS.find((each) => each === given)
  if (!format) throw new Refusal(EXIT.usage, `--format must be one of: ${FORMATS.join(', ')}, not "${given}".`)
  const graphs = await graphsOf(process.cwd())
  const [name] = call.words
  const chosen = name === undefined ? graphs : graphs.filter((graph) => graph.name === name)
  const names = graphs.map((graph) => graph.name).join(', ')
  if (chosen.length === 0)
    throw new Refusal(EXIT.missing, `There is no workflow "${name ?? ''}". Choose one of: ${names}.`)
  const { toJson, toMermaid } = await import('../../graphs/index.ts')
  for (const graph of chosen) {
    if (format === 'json') printJson(toJson(graph))
    // A comment of Mermaid.
    else print(`%% ${graph.name}\n${toMermaid(graph).trimEnd()}`)
  }
  return EXIT.ok
}
