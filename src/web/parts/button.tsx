// Buttons, and the links that look like them. A button reacts only to people: events made by scripts are ignored.
import { ArrowUpRight, Check, Copy } from './icons.ts'
import { type ReactNode, useState } from 'react'
import { Link } from 'wouter'

export type ButtonProps = {
  readonly children: ReactNode
  readonly onPress: () => void
  readonly kind?: 'plain' | 'primary' | 'danger' | 'quiet'
  readonly size?: 'normal' | 'small'
  readonly disabled?: boolean
  /** For screen readers and the tooltip. */
  readonly label?: string
  readonly type?: 'button' | 'submit'
  readonly pressed?: boolean
}

export function Button({
  children,
  onPress,
  kind = 'plain',
  size = 'normal',
  label,
  type = 'button',
  ...more
}: ButtonProps) {
  return (
    <button
      type={type}
      className={`button ${kind} ${size}`}
      aria-label={label}
      title={label}
      aria-pressed={more.pressed}
      disabled={more.disabled}
      onClick={(event) => {
        if (event.isTrusted) onPress()
      }}
    >
      {children}
    </button>
  )
}

const COPIED_MS = 1_500

/** Copies a text, and shows that it did. */
export function CopyButton({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [copied, setCopied] = useState(false)
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => {
      setCopied(true)
      setTimeout(() => setCopied(false), COPIED_MS)
    })
  }
  return (
    <Button kind="quiet" size="small" label={copied ? 'Copied' : label} onPress={copy}>
      {copied ? <Check size={14} aria-hidden /> : <Copy size={14} aria-hidden />}
    </Button>
  )
}

/** A link within the inspector, styled as a button. @public */
export function ButtonLink({ to, children }: { readonly to: string; readonly children: ReactNode }) {
  return (
    <Link href={to} className="button plain normal">
      {children}
    </Link>
  )
}

/** An external link. It shows the host that it leads to, whatever its text says. */
export function OutLink({ url, children }: { readonly url: string; readonly children: ReactNode }) {
  const host = hostOf(url)
  if (host === null) return <>{children}</>
  return (
    <a href={url} target="_blank" rel="noreferrer noopener" className="out-link">
      {children} <span className="out-host">{host}</span>
      <ArrowUpRight size={12} aria-hidden />
    </a>
  )
}

/** Null for addresses that are not http or https, such as scripts, files and data. */
function hostOf(url: string): string | null {
  if (!URL.canParse(url)) return null
  const { protocol, host } = new URL(url)
  return protocol === 'https:' || protocol === 'http:' ? host : null
}
