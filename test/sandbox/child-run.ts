// One command in the sandbox. As a process of its own it is a harness that is going to be killed: it runs what it is sent.
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { bashTool } from '../../src/tools/shell/bash.ts'
import { testSandbox } from '../../src/tools/shell/sandbox-check.ts'
import { toolContext } from '../tools/context.ts'

export type Order = { readonly workspace: string; readonly command: string; readonly timeout_ms?: number }

export async function run({ workspace, ...args }: Order, signal: AbortSignal): Promise<unknown> {
  // The shell's profile is not what is tried here, and takes its time.
  const tool = bashTool({ workspace, env: { ...process.env, HOME: workspace } })
  return await tool.execute(args, toolContext({ signal }))
}

if (process.send) {
  process.on('message', (order) => void run(order as Order, new AbortController().signal))
  // Before the clock of the killer starts: it should hit the command and not the self-test.
  await testSandbox('/usr/bin/bwrap', runtimeClock)
  process.send('ready')
}
