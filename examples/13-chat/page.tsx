// The page of the chat: what `useChat` gives, drawn plainly. The session is named in the address, so a reload comes back to it.
import { useChat } from '@ai-sdk/react'
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai'
import { useState } from 'react'
import { createRoot } from 'react-dom/client'

const transport = new DefaultChatTransport({ api: '/api/chat' })

function Chat({ id, before }: { readonly id: string; readonly before: UIMessage[] }) {
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    id,
    messages: before,
    resume: true,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  const [text, setText] = useState('')
  return (
    <main>
      {messages.map(({ id: key, role, parts }) => (
        <article key={key} className={role}>
          {parts.map((part, i) => (
            <Part key={`${key}-${i}`} part={part} decide={addToolApprovalResponse} />
          ))}
        </article>
      ))}
      <p id="status">{error ? error.message : status}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void sendMessage({ text })
          setText('')
        }}
      >
        <input id="text" value={text} onChange={(event) => setText(event.target.value)} />
        <button id="send">Send</button>
      </form>
    </main>
  )
}

type Decide = ReturnType<typeof useChat>['addToolApprovalResponse']

function Part({ part, decide }: { readonly part: UIMessage['parts'][number]; readonly decide: Decide }) {
  if (part.type === 'text') return <p>{part.text}</p>
  if (part.type === 'reasoning') return <em>{part.text}</em>
  if (!isToolUIPart(part)) return null
  const asked = part.state === 'approval-requested' ? part.approval.id : null
  return (
    <section className="call">
      <code>
        {getToolName(part)} {JSON.stringify(part.input)} {part.state} {JSON.stringify(part.output ?? part.errorText)}
      </code>
      {asked !== null && (
        <button className="yes" onClick={() => void decide({ id: asked, approved: true })}>
          Yes
        </button>
      )}
      {asked !== null && (
        <button className="no" onClick={() => void decide({ id: asked, approved: false })}>
          No
        </button>
      )}
    </section>
  )
}

const id = location.hash.slice(1) || crypto.randomUUID()
location.hash = id
const response = await fetch(`/api/chat/${id}/messages`)
const { messages } = (await response.json()) as { messages: UIMessage[] }
const root = document.getElementById('root')
if (root) createRoot(root).render(<Chat id={id} before={messages} />)
