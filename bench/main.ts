// `npm run bench`: every figure beside a floor written by hand, measured in the same run. The table of benches is
// families.ts; what each figure means is docs/benchmarks.md.
//   --json            one object a line instead of the table
//   --only A,B        figures by name, or all of a family: `loop` is loop, loop.cold and loop.growth
//   --repetitions N   instead of each family's own number
//   --peers           beside what others publish, which is installed for it (peers.ts)
import { fileURLToPath } from 'node:url'
import { argumentsOf, refuse, wholeNumber } from '../sim/arguments.ts'
import { allFamilies, familyOf, peerFamily } from './families.ts'
import type { Family, Figure } from './family.ts'
import { measure, runCase } from './measure.ts'
import { headLine, jsonLine, machineLine, tableLine } from './report.ts'

const script = fileURLToPath(import.meta.url)

type Asked = { readonly json: boolean; readonly only: readonly string[]; readonly repetitions: number | null }

async function bench(all: readonly Family[], { json, only, repetitions }: Asked): Promise<void> {
  const wanted = (figure: Figure): boolean => only.length === 0 || only.some((name) => matches(figure, name))
  const known = all.flatMap((family) => family.figures)
  const strange = only.find((name) => !known.some((figure) => matches(figure, name)))
  if (strange !== undefined)
    refuse(`There is no bench "${strange}". Choose from: ${known.map((figure) => figure.name).join(', ')}.`)
  if (json) console.error(machineLine())
  else console.log(`${machineLine()}\n\n${headLine()}`)
  for (const family of all) {
    const figures = family.figures.filter(wanted)
    if (figures.length > 0) await show(family, figures, { json, repetitions })
  }
}

/** A family that breaks does not keep the others from being measured, but the whole is then no success. */
async function show(
  family: Family,
  figures: readonly Figure[],
  options: { json: boolean; repetitions: number | null },
): Promise<void> {
  try {
    const repetitions = options.repetitions ?? family.repetitions
    for (const measured of await measure({ family, figures, repetitions, script })) {
      console.log(options.json ? jsonLine(measured) : tableLine(measured))
    }
  } catch (error) {
    process.exitCode = 1
    console.error(`${figures.map(({ name }) => name).join(', ')} broke: ${String(error)}`)
  }
}

function matches({ name }: Figure, asked: string): boolean {
  return name === asked || name.startsWith(`${asked}.`)
}

const { values, positionals } = argumentsOf('bench', {
  options: {
    json: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    repetitions: { type: 'string' },
    peers: { type: 'boolean', default: false },
    case: { type: 'string' },
  },
  allowPositionals: true,
})

if (values.case !== undefined) await runCase(familyOf, values.case, positionals[0] ?? '')
else {
  if (positionals.length > 0)
    refuse(`"${positionals[0]}" is not an option. One figure is measured with: --only ${positionals[0]}`)
  const only = values.only.flatMap((names) => names.split(',')).filter((name) => name !== '')
  const repetitions = values.repetitions === undefined ? null : wholeNumber(values.repetitions, 'repetitions', 1)
  await bench(values.peers ? [await peerFamily()] : await allFamilies(), { json: values.json, only, repetitions })
}
