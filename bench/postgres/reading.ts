// `postgres.read`: a log of 20,000 events, verified and parsed by the store, beside the same bodies asked for as one text and parsed.
import { type Case, type Family, medianOf } from '../family.ts'
import { buildLog } from '../log.ts'
import { lacks, onGround, SCHEMA } from './ground.ts'

const EVENTS = 20_000
const ROUNDS = 15
const WARM_UP = 5

const ONE_TEXT = `select string_agg(e.body, ',' order by e.seq) as text from ${SCHEMA}.sessions s join ${SCHEMA}.events e on e.n = s.n
  where s.id = $1`

const compare: Case = (folder) =>
  onGround(folder, async ({ store, bare }) => {
    await buildLog(store, { id: 'bench', events: EVENTS })
    const reads = [
      async (): Promise<number> => (await store.read('bench', 0)).events.length,
      async (): Promise<number> => {
        const { rows } = await bare.query<{ text: string }>({ name: 'text', text: ONE_TEXT, values: ['bench'] })
        return (JSON.parse(`[${rows[0]?.text ?? ''}]`) as unknown[]).length
      },
    ]
    const times = reads.map((): number[] => [])
    for (let round = 0; round < WARM_UP + ROUNDS; round++) {
      for (const [i, read] of reads.entries()) {
        const begun = performance.now()
        const count = await read()
        times[i]?.push(performance.now() - begun)
        if (count !== EVENTS) throw new Error(`${count} events were read`)
      }
    }
    const [ms, floor] = times.map((all) => medianOf(all.slice(WARM_UP)))
    return { ms: ms ?? Number.NaN, floor: floor ?? Number.NaN }
  })

export const reading: Family = {
  repetitions: 3,
  lacks,
  cases: { compare },
  figures: [
    {
      name: 'postgres.read',
      unit: '× one text',
      target: 2,
      value: (median) => median('compare.ms') / median('compare.floor'),
      floor: () => 1,
      note: (median) => `${median('compare.ms').toFixed(0)} ms for ${EVENTS} events`,
    },
  ],
}
