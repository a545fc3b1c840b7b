import type { ReactNode } from 'react'

export const metadata = { title: 'Shop' }

const style = { font: '16px/1.5 system-ui', maxWidth: '40rem', margin: '2rem auto', padding: '0 1rem' }

export default function Layout({ children }: { readonly children: ReactNode }) {
  return (
    <html lang="en">
      <body style={style}>{children}</body>
    </html>
  )
}
