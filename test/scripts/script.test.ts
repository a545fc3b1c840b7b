import { expect, it } from 'vitest'
import { runCells } from './stage.ts'
it('first', async () => {
  const got = await runCells([
    { script: 'x = 2' },
    ([first]) => ({ script: 'answer(x * 21)', session_id: first?.session_id ?? '' }),
    { script: 'const all = await Promise.all([1,2,3].map((n) => tool_call("read", { path: "p" + n })));\nreturn all' },
    { script: 'return [await tool_call("rows"), await model_query("hm")]' },
    { script: 'await tool_call("fail")' },
  ])
  console.log(JSON.stringify(got.texts, null, 1), got.result.status, got.seen)
})
