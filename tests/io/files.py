"""A small table that the tests of files share."""

CSV = """age,town,trust,clinic,label
31,Ulm,0.5,A,yes
 45 ,"Bad Aibling, Mitte",1,B,no
2.5e1,Ulm,0,A,yes
60,Köln,0.25,B,no
"""
