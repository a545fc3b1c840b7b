// A what-if of an exported session, in another process.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { archiveOf, checkArchive, type Portable, whatIf } from '../../src/replay.ts'
import { exported, payingAgent, told } from './child-what-if.ts'

async function inProcess(file: Portable): Promise<unknown> {
  const script = fileURLToPath(new URL('../../.build/test/whatif/child-what-if.js', import.meta.url))
  const child = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.on('data', (data: Buffer) => {
    said += data.toString()
  })
  child.stdin.end(JSON.stringify(file))
  await once(child, 'close')
  return JSON.parse(said)
}

describe('an exported session', () => {
  it('B-WHATIF-19: has the same what-if in another process', async () => {
    const file = await exported()
    const here = await told(file)
    expect(JSON.stringify(here)).toContain('"drift":1')
    expect(await inProcess(file)).toEqual(here)
  })

  it('B-WHATIF-19: and the what-if can be exported itself, and asked what if again', async () => {
    const { store, session } = await whatIf(await exported(), { at: 6, agent: payingAgent('Be careful.') })
    const { records } = await archiveOf(store, session)
    await expect(checkArchive(JSON.parse(JSON.stringify(records)))).resolves.toMatchObject({ session })
    const again = await whatIf(records, { at: 6, agent: payingAgent('Be careful.') })
    expect(again).toMatchObject({ drift: 0, settled: { type: 'completed' } })
    const { model: _model, ...agent } = payingAgent('Be careful.')
    expect(await whatIf(records, { at: 10, agent })).toMatchObject({ drift: 0, cost: 0 })
  })
})
