// The example of docs/guide/workflows.md, word for word but for this line and its imports. guide.test.ts compares and runs it.
import { Harness, offline } from '../../src/index.ts'
import { append, END, last, START, toMermaid, withState } from '../../src/graphs/index.ts'

const { node, mapNode, graph } = withState({
  topic: last(''),
  sources: last<readonly string[]>([]),
  facts: append<string>(),
  draft: last(''),
})

const report = graph({
  name: 'report',
  nodes: {
    plan: node({
      effect: 'read',
      reads: ({ topic }) => ({ topic }),
      run: ({ topic }) => ({ sources: [`${topic} today`, `${topic} a hundred years ago`] }),
    }),
    search: mapNode({
      effect: 'read',
      over: ({ sources }) => sources,
      run: (source) => `One page says of ${source}: 4 °C and rain.`,
      take: (results) => ({ facts: results.flatMap((result) => (result.ok ? [result.value] : [])) }),
    }),
    write: node({
      effect: 'read',
      reads: ({ topic, facts }) => ({ topic, facts }),
      run: ({ topic, facts }) => ({ draft: [`# ${topic}`, ...facts].join('\n') }),
    }),
    publish: node({
      approval: 'ask',
      reads: ({ draft }) => ({ path: 'report.md', text: draft }),
      run: ({ path, text }) => console.log(`wrote ${path}, ${text.length} characters`),
    }),
  },
  edges: [
    [START, 'plan'],
    ['plan', 'search'],
    { from: 'search', to: ['write', END], by: ({ facts }) => (facts.length > 0 ? 'write' : END) },
    ['write', 'publish'],
    ['publish', END],
  ],
})

const harness = new Harness({ model: offline(), graphs: [report] })
const parked = await harness.run({ topic: 'The weather in Oslo' }, { agent: 'report' })
const [gate] = parked.pending
console.log(`${parked.status}: ${gate?.tool} ${JSON.stringify(gate?.args)}`)

const session = harness.session(parked.sessionId)
if (gate) await session.decide({ ...gate, allow: true, by: 'ana' })
const result = await session.run()
console.log(`${result.status} after ${result.usage.toolCalls} calls`)
console.log(toMermaid(report))
await harness.close()
