// A code block: its language and a copy button. It has no syntax highlighting, which would take a twelfth of the size
// budget of all pages.
import { memo } from 'react'
import { CopyButton } from './button.tsx'
import { Text } from './exact-text.tsx'

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
