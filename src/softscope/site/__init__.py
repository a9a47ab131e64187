"""The site: the course, the ledger, a sample report and the reference as plain files, in both languages.

    from softscope.site.build import build

English pages lie in the folder itself, Chinese ones in `zh/`, what they share in `assets/`. A page opens from
`file://` and from any static host, and fetches nothing from elsewhere.
"""
