// Code of a text: which language it says it is in, and a button to copy it. Its words have no colours: what colours the languages that
// people write is a twelfth of what all pages may weigh.
import { memo } from 'react'
import { CopyButton } from './button.tsx'
import { Text } from './text.tsx'

export const Code = memo(function Code({ text, language = '' }: { readonly text: string; readonly language?: string }) {
  return (
    <div className="code">
      <div className="code-head">
        <span>{language.trim().split(/\s/)[0]}</span>
        <CopyButton text={text} label="Copy code" />
      </div>
      <pre tabIndex={0}>
        <Text as="block" mono text={text} />
      </pre>
    </div>
  )
})
