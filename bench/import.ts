// `import`: what `import 'terret'` costs over a bare node process. CPU of whole processes, start to end.
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Case, type Family, medianOf } from './family.ts'

const SPAWNS = 7
const REPORT = 'const { user, system } = process.cpuUsage(); console.log((user + system) / 1000)\n'
/** The same files as dist/index.js loads, built by the command that runs this; dist/ itself may be being rebuilt. */
/** As published: the bundle that `npm run build` made. */
const index = new URL('../../dist/index.js', import.meta.url).href

const spawned: Case = async (folder) => {
  const files = { bare: join(folder, 'bare.mjs'), product: join(folder, 'product.mjs') }
  writeFileSync(files.bare, REPORT)
  writeFileSync(files.product, `import '${index}'\n${REPORT}`)
  const bare: number[] = []
  const product: number[] = []
  for (let i = 0; i < SPAWNS; i++) {
    bare.push(await cpuOf(files.bare))
    product.push(await cpuOf(files.product))
  }
  return { bare: medianOf(bare), product: medianOf(product) }
}

async function cpuOf(file: string): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, [file])
  return Number(stdout)
}

export const importing: Family = {
  repetitions: 3,
  cases: { spawned },
  figures: [
    {
      name: 'import',
      unit: 'CPU ms',
      target: 40,
      value: (median) => median('spawned.product') - median('spawned.bare'),
      floor: (median) => median('spawned.bare'),
      note: () => 'over bare node, which is the floor',
    },
  ],
}
