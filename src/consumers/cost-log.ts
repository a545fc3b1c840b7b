// A consumer that writes one JSON line for each settled run: what it cost, and for whom.
import { open } from 'node:fs/promises'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { nonEmptyCheck, optionsChecker, requiredCheck } from '../options.ts'
import type { Consumer } from '../runtime/hooks/consumers.ts'
import type { SettledRun } from '../runtime/hooks/settled-run.ts'
import { isObject, parseJson } from '../view/untrusted-json.ts'

/** Options of `costLog`: the file that gets a line for each run. */
export type CostLogOptions = {
  /** The path of the file that lines are added to. */
  readonly file: string
  /** The name of the consumer. Default: `cost-log`. */
  readonly name?: string
}
const checkCostLog = optionsChecker<CostLogOptions>('costLog', {
  file: requiredCheck(nonEmptyCheck),
  name: nonEmptyCheck,
})

/** A key is never written twice: before a run is told again, the whole file is searched for its key. */
export function costLog(options: CostLogOptions): Consumer {
  checkCostLog(options)
  const { file, name = 'cost-log' } = options
  return {
    name,
    run: async (settled, { key, repeated }) => {
      if (!repeated || !(await hasKey(file, key))) await appendLine(file, costLine(settled, key))
    },
  }
}

function costLine({ session, agent, run, outcome, endedAt, beganAt, usage, cost, labels }: SettledRun, key: string) {
  const { inputTokens, outputTokens, modelRequests, toolCalls } = usage
  const counted = { inputTokens, outputTokens, modelRequests, toolCalls }
  const spent = { usd: cost.usd, ownUsd: cost.ownUsd }
  const at = { endedAt: new Date(endedAt).toISOString(), durationMs: endedAt - beganAt }
  return JSON.stringify({ key, session, run, agent, outcome: outcome.type, ...at, ...spent, ...counted, labels })
}

async function hasKey(file: string, key: string): Promise<boolean> {
  try {
    for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
      const value = line.includes(key) ? parseJson(line) : null
      if (isObject(value) && value['key'] === key) return true
    }
    return false
  } catch (error) {
    if ((error as { readonly code?: unknown }).code === 'ENOENT') return false
    throw error
  }
}

/** One write, after a line break where a killed process left half a line. On disk when this resolves. */
async function appendLine(file: string, line: string): Promise<void> {
  const handle = await open(file, 'a+', 0o600)
  try {
    const { size } = await handle.stat()
    const { buffer } = size === 0 ? { buffer: Buffer.from('\n') } : await handle.read(Buffer.alloc(1), 0, 1, size - 1)
    await handle.write(`${buffer[0] === 0x0a ? '' : '\n'}${line}\n`)
    await handle.datasync()
  } finally {
    await handle.close()
  }
}
