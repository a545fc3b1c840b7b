// Model, arguments, tool, history: the least that can be called an agent. The floor of the benches that touch no disk.
import { argsOf, resultOf } from './turn.ts'

export type Message = { readonly role: string; readonly content: unknown }

/** `onCall` is told each time the model is called, with how often it was before. */
export async function bareRun(turns: number, onCall: (n: number) => void = () => {}): Promise<readonly Message[]> {
  const model = async (_messages: readonly Message[], n: number) => {
    onCall(n)
    const calls = [{ id: `call_${n}`, tool: 'lookup', args: JSON.stringify(argsOf(n)) }]
    return n < turns ? { text: '', calls } : { text: 'done', calls: [] }
  }
  const tools = new Map([['lookup', async (args: unknown) => resultOf(args)]])
  const messages: Message[] = [{ role: 'user', content: 'go' }]
  for (let n = 0; ; n++) {
    const reply = await model(messages, n)
    messages.push({ role: 'assistant', content: reply })
    if (reply.calls.length === 0) return messages
    for (const call of reply.calls) {
      const content = await tools.get(call.tool)?.(JSON.parse(call.args))
      messages.push({ role: 'tool', content: { id: call.id, content } })
    }
  }
}
