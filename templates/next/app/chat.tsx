'use client'

// The chat in the browser: what `useChat` gives, drawn plainly. A call that waits for the customer has two buttons.
import { useChat } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai'
import { useState } from 'react'

const transport = new DefaultChatTransport({ api: '/api/chat' })

export function Chat({ id, before }: { readonly id: string; readonly before: UIMessage[] }) {
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    id,
    messages: before,
    resume: true, // goes on with an answer that a reload has interrupted
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  const [text, setText] = useState('')
  return (
    <main>
      {messages.map(({ id: key, role, parts }) => (
        <article key={key}>
          <strong>{role === 'user' ? 'You' : 'Shop'}</strong>
          {parts.map((part, i) => (
            <Part key={`${key}-${i}`} part={part} decide={addToolApprovalResponse} />
          ))}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void sendMessage({ text })
          setText('')
        }}
      >
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        <button disabled={status !== 'ready' || text === ''}>Send</button>
      </form>
    </main>
  )
}

type Decide = ReturnType<typeof useChat>['addToolApprovalResponse']

function Part({ part, decide }: { readonly part: UIMessage['parts'][number]; readonly decide: Decide }) {
  if (part.type === 'text') return <p>{part.text}</p>
  if (!isToolUIPart(part)) return null
  const asked = part.state === 'approval-requested' ? part.approval.id : null
  return (
    <section>
      <code>
        {getToolName(part)} {JSON.stringify(part.input)}
      </code>
      {asked !== null && (
        <p>
          <button onClick={() => void decide({ id: asked, approved: true })}>Yes</button>{' '}
          <button onClick={() => void decide({ id: asked, approved: false })}>No</button>
        </p>
      )}
    </section>
  )
}
